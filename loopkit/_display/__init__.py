"""Display of values in notebooks: HTML, and plain text with the same content."""
