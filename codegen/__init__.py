"""From a kernel to the tree of C and its text; the proof of both."""
