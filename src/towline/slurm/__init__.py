"""Slurm as text: command lines and the batch script out, answers in. No I/O."""
