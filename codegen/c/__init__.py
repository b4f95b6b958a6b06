"""The typed syntax tree of C: its nodes, the printer, and the reader that parses printed text.

Lowering builds this tree, and the proof analyses it.
"""
