"""``lk.explore``: interactive controls for the arguments of a function that makes a kernel."""
