"""One module per chaos run."""
