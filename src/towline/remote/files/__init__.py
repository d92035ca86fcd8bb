"""Moving files and trees to and from a cluster."""
