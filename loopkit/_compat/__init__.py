"""What Loopy's scripts say that loopkit has another word for, or no use for: all of it is here."""
