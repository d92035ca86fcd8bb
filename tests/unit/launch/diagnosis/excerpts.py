"""The labelled excerpts of tests/diagnosis/excerpts, as facts and logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from towline.launch.diagnosis.verdict import Facts
from towline.slurm.nodes import expand_nodes

PLACE = Path(__file__).parents[3] / "diagnosis/excerpts"


@dataclass(frozen=True)
class Excerpt:
    """One excerpt with its labels (see the README beside it)."""

    name: str
    kind: str
    retry: str
    blames: str
    facts: Facts
    logs: dict[str, str]


def excerpts() -> list[Excerpt]:
    """Every excerpt."""
    return [_read(path) for path in sorted(PLACE.glob("*.txt"))]


def _read(path: Path) -> Excerpt:
    head, _, body = path.read_text().partition("\n=== ")
    labels = dict(line[2:].split(": ", 1) for line in head.splitlines())
    sections = [part.partition("\n") for part in f"\n=== {body}".split("\n=== ")[1:]]
    slurm: dict[str, str] = {}
    logs: dict[str, str] = {}
    places: dict[str, str] = {}
    for title, _, text in sections:
        name, _, host = title.partition(" @")
        if name.strip() == "slurm":
            slurm = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
            continue
        logs[name.strip()] = text
        if host:
            places[name.strip()] = host.strip()
    steps = slurm.get("steps", "").split(";") if slurm.get("steps") else []
    facts = Facts(
        slurm=(
            *(f"{key}={slurm[key]}" for key in ("state", "exit", "reason", "comment") if slurm.get(key)),
            *(f"step={step.strip()}" for step in steps),
        ),
        nodes=expand_nodes(slurm.get("nodes", "")),
        places=places,
    )
    return Excerpt(path.stem, labels["class"], labels["retry"], labels["blames"], facts, logs)
