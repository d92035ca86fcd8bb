"""`SlurmSDK`, and the handler that a monitor of one's own may use."""

from towline.tao.platforms.slurm.handler import SlurmHandler as SlurmHandler
from towline.tao.platforms.slurm.sdk import SlurmSDK as SlurmSDK

__all__ = ["SlurmHandler", "SlurmSDK"]
