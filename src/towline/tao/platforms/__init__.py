"""Where TAO's jobs run: here on Slurm."""
