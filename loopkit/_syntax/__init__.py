"""The language: from text to raw syntax trees.  Nothing here knows a kernel."""
