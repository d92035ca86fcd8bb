"""Benchmarks: one module each in `cases`, run by `./bench`."""
