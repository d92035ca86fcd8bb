"""What Slurm's words and the job's own record of its end mean, in the words of the rules that know them."""

from __future__ import annotations

from towline.launch.diagnosis.rules import by_name

_ENDS = {
    "TIMEOUT": "time-limit",
    "OUT_OF_MEMORY": "out-of-memory",
    "NODE_FAIL": "node-fail",
    "BOOT_FAIL": "boot-fail",
    "PREEMPTED": "preempted",
    "DEADLINE": "deadline",
    "DependencyNeverSatisfied": "dependency-never-satisfied",
}
"""Slurm's words for states and reasons that tell why a job ended → the rule that says so for people."""


def end_of(word: str) -> str:
    """What a state or a reason of Slurm's says of an end, as half a sentence; empty when it says nothing."""
    return _told(_ENDS.get(word, ""))


def failure_of(reason: str) -> str:
    """What `reason` of `launch.records.EndRecord` means; empty for the command's own code."""
    return _told(f"end-{reason}")


def _told(name: str) -> str:
    rule = by_name().get(name)
    return rule.means[:1].lower() + rule.means[1:].rstrip(".") if rule else ""
