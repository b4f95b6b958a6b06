"""The language: from text to raw syntax trees, without any knowledge of kernels."""
