"""What a cluster says of itself (`scripts/facts.sh`)."""

from __future__ import annotations

from towline.models.site import Partition, SiteFacts


def parse_facts(stdout: str, asked: float = 0.0) -> SiteFacts:
    """Read the answer of the facts script.

    Raises:
        ValueError: a query failed; the sentence is Slurm's own.
    """
    raise NotImplementedError


def parse_partitions(scontrol: str, sinfo: str) -> tuple[Partition, ...]:
    """Partitions from `scontrol -o show partition` and `sinfo` (`towline.slurm.commands.SINFO_FORMAT`)."""
    raise NotImplementedError
