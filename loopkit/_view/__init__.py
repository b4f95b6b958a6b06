"""One page that shows a schedule, step by step, down to its machine code."""
