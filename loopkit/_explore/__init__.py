"""``lk.explore``: a schedule that is a function, and controls for what it is called with."""
