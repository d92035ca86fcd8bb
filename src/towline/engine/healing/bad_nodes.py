"""Nodes that were found bad: remembered for a while, for the user's other jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from towline.engine.session import Session
from towline.models.job import JobRecord
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.nodes import expand_nodes

HOURS = 6.0
"""How long a node is left out: long enough for a site to drain it, short enough for one that was mended."""


def remember_bad_nodes(session: Session, records: Sequence[JobRecord]) -> None:
    """Keep the nodes that a look has shown to be bad, before the jobs themselves are kept."""
    for record in records:
        guilty = [each for each in record.attempts if each.cause == "node" and each.bad_nodes]
        before = session.store.job(record.id) if guilty else None
        known = {(each.number, each.bad_nodes) for each in before.attempts} if before else set[tuple[int, str]]()
        for attempt in guilty:
            if (attempt.number, attempt.bad_nodes) not in known:
                why = f"job {record.id}: {attempt.evidence or 'a fault of the node'}"
                _remember(session, expand_nodes(attempt.bad_nodes), why)


def _remember(session: Session, nodes: Sequence[str], why: str) -> None:
    until = time.time() + HOURS * 3600
    with session.store.writing() as db:
        for node in nodes:
            db.execute(
                "REPLACE INTO bad_nodes (cluster, node, until, why) VALUES (?, ?, ?, ?)",
                (session.profile.name, node, until, why),
            )


def bad_nodes(session: Session) -> tuple[str, ...]:
    """The nodes of the cluster that are left out now."""
    with session.store.reading() as db:
        rows = db.execute(
            "SELECT node FROM bad_nodes WHERE cluster = ? AND until > ? ORDER BY node",
            (session.profile.name, time.time()),
        )
        return tuple(row["node"] for row in rows)


@dataclass(frozen=True)
class Avoiding:
    """A spec that leaves bad nodes out, and what is to be said of it."""

    spec: JobSpec
    notes: tuple[str, ...] = ()


def avoiding(spec: JobSpec, partition: Sequence[str], bad: Sequence[str], facts: SiteFacts) -> Avoiding:
    """The spec without the nodes that were found bad, where enough others are left.

    Args:
        spec: the job.
        partition: the profile's partitions.
        bad: names of the nodes.
        facts: what the site said of itself.
    """
    excluded, asked = expand_nodes(spec.exclude or ""), expand_nodes(spec.nodelist or "")
    left_out = [node for node in bad if node not in excluded and node not in asked]
    gone = len(left_out) + len(excluded)
    if not left_out or not all(_has_room(each, partition, gone, facts) for each in spec.components or (spec,)):
        return Avoiding(spec)
    text = ",".join([*([spec.exclude] if spec.exclude else []), *left_out])
    note = f"{', '.join(left_out)} {'is' if len(left_out) == 1 else 'are'} left out, found bad in the last hours"
    return Avoiding(spec.model_copy(update={"exclude": text}), (note,))


def _has_room(spec: JobSpec, partition: Sequence[str], gone: int, facts: SiteFacts) -> bool:
    """Whether a job, or a component of one, finds enough nodes in its partitions when so many are left out."""
    names = spec.partition or partition or tuple(part.name for part in facts.partitions if part.default)
    nodes = sum(part.nodes for part in facts.partitions if part.name in names)
    return nodes - gone >= max(spec.resources.nodes, 1)
