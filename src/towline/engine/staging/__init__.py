"""What a job needs on the cluster before it starts: code and data."""
