"""The contract of NVIDIA TAO's SDK for Slurm on top of the engine; see docs/tao.md."""

from __future__ import annotations

from towline.tao.job_store import JobStore as JobStore
from towline.tao.models import Checkpoint as Checkpoint
from towline.tao.models import CredentialError as CredentialError
from towline.tao.models import Job as Job
from towline.tao.models import JobStatus as JobStatus

__all__ = ["Checkpoint", "CredentialError", "Job", "JobStatus", "JobStore"]
