"""A real Slurm cluster on one Debian or Ubuntu machine, for trying and testing."""

from towline.lab.errors import LabError
from towline.lab.lab import Lab, LabStatus, PartHealth
from towline.lab.runtime import RuntimeChoice

__all__ = ["Lab", "LabError", "LabStatus", "PartHealth", "RuntimeChoice"]
