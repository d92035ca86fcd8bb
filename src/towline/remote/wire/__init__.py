"""How one operation goes over a channel, and how its answer comes back."""
