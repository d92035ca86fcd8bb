"""Jobs that are broken on purpose, and what became of them."""
