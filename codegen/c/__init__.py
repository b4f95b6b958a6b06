"""The typed tree of C that lowering makes and the proof reads: nodes, printer, reader."""
