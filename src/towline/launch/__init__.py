"""What happens inside the allocation: the supervisor, the prelude and the environment of every rank. No I/O."""
