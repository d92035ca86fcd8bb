"""The contract of NVIDIA TAO's SDK for Slurm on top of the engine."""
