"""Reaching into jobs that run: commands and shells beside their ranks, their GPUs, and allocations for a shell."""
