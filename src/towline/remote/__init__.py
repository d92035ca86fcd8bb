"""Running an operation or moving bytes on a login host. Knows nothing of Slurm."""
