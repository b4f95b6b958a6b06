"""What a schedule costs, counted from its sets."""
