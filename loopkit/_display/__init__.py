"""How values show themselves in notebooks: HTML, and plain text of the same quality."""
