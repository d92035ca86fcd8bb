"""What would be sent, and whether it can work: decided before anything is changed."""
