"""Paths: what to stage, what to read, what to bring back. No I/O."""
