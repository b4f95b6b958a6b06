"""Compatibility with Loopy: names and arguments that loopkit calls differently or does not need."""
