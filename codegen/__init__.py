"""Lowering: from a scheduled kernel to a tree of C and its printed text, and the proof of that
text.
"""
