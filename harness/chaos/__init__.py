"""Chaos: one module each in `cases`, run by `./chaos`."""
