"""What a cluster says of itself (`scripts/facts.sh`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from towline.models.site import Partition, SiteFacts
from towline.slurm.frames import Frame, is_complete, parse_frames

DEFAULT_MESSAGE_TIMEOUT = 10  # seconds, slurm.conf(5)

_CONFIG = re.compile(r"^(\w+)\s*=\s?(.*?)\s*$", re.MULTILINE)
_PAIR = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")
_TIME = re.compile(r"(?:(\d+)-)?(\d+):(\d{2}):(\d{2})")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+)")
_COUNT = re.compile(r"(\d+)([KMGTP]?)\+?", re.IGNORECASE)
_MULTIPLE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


@dataclass(frozen=True)
class NodeGroup:
    """Equal nodes of one partition, one line of `sinfo --exact`.

    Attributes:
        partition: its name.
        count: number of nodes.
        cpus: CPUs of each.
        memory: MiB of each.
        gpus: GPUs of each by type; the type is empty where the site names none.
    """

    partition: str
    count: int
    cpus: int
    memory: int
    gpus: tuple[tuple[str, int], ...] = ()


def parse_facts(stdout: str, asked: float = 0.0) -> SiteFacts:
    """Read the answer of the facts script; `asked` is when it was asked, in seconds since 1970.

    Raises:
        ValueError: a query failed; the sentence is Slurm's own.
    """
    frames = parse_frames(stdout)
    if not is_complete(frames):
        raise ValueError("the cluster's answer broke off")
    config, partitions, nodes = (_answer(frames, name) for name in ("config", "partitions", "nodes"))
    settings = parse_config(config)
    return SiteFacts(
        cluster=settings.get("ClusterName", ""),
        version=settings.get("SLURM_VERSION", ""),
        partitions=parse_partitions(partitions, nodes),
        message_timeout=_first_number(settings.get("MessageTimeout", "")) or DEFAULT_MESSAGE_TIMEOUT,
        asked=asked,
    )


def parse_config(scontrol: str) -> dict[str, str]:
    """Settings from `scontrol show config`."""
    return dict(_CONFIG.findall(scontrol))


def parse_partitions(scontrol: str, sinfo: str) -> tuple[Partition, ...]:
    """Partitions from `scontrol -o show partition` and `sinfo` (`towline.slurm.commands.SINFO_FORMAT`)."""
    groups = parse_nodes(sinfo)
    partitions = [_partition(line) for line in scontrol.splitlines()]
    return tuple(
        _with_nodes(part, [group for group in groups if group.partition == part.name]) for part in partitions if part
    )


def parse_nodes(sinfo: str) -> tuple[NodeGroup, ...]:
    """Groups of equal nodes; a line that is none is passed over."""
    return tuple(group for line in sinfo.splitlines() if (group := _node_group(line)))


def parse_gpus(gres: str) -> tuple[tuple[str, int], ...]:
    """GPUs by type in a node's gres: `gpu:h100:8(S:0-1)`, `gpu:a100:4(S:2,4,7),shard:8`, `gpu:2`, `(null)`.

    Counts of one type are added up.
    """
    counts: dict[str, int] = {}
    for entry in _entries(gres):
        name, *rest = entry.split(":")
        if name.strip().lower() != "gpu":
            continue
        numbers = [count for part in rest if (count := _count(part)) is not None]
        types = [part for part in rest if _count(part) is None and part != "no_consume"]
        kind = types[0] if types else ""
        counts[kind] = counts.get(kind, 0) + (numbers[-1] if numbers else 1)
    return tuple(counts.items())


def parse_limit(text: str) -> int | None:
    """Seconds of `scontrol`'s `[D-]HH:MM:SS` or `MM:SS`; None for `UNLIMITED`, `NONE`, `INFINITE` and the like."""
    if found := _TIME.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    if found := _CLOCK.fullmatch(text):
        return int(found[1]) * 60 + int(found[2]) if found[1] else int(found[2]) * 60
    return None


def _answer(frames: tuple[Frame, ...], name: str) -> str:
    for frame in frames:
        if frame.kind == "query" and frame.head[2:3] == (name,):
            if frame.head[1] == "0":
                return frame.out
            raise ValueError(frame.err.strip() or f"the query for {name} ended with exit code {frame.head[1]}")
    raise ValueError(f"the answer has no {name}")


def _partition(line: str) -> Partition | None:
    pairs = dict(_PAIR.findall(line))
    if "PartitionName" not in pairs:
        return None
    max_nodes = pairs.get("MaxNodes", "")
    return Partition(
        name=pairs["PartitionName"],
        default=pairs.get("Default") == "YES",
        available=pairs.get("State", "UP") == "UP",
        max_time=parse_limit(pairs.get("MaxTime", "")),
        default_time=parse_limit(pairs.get("DefaultTime", "")),
        max_nodes=int(max_nodes) if max_nodes.isdecimal() else None,
        nodes=_first_number(pairs.get("TotalNodes", "")) or 0,
    )


def _with_nodes(part: Partition, groups: list[NodeGroup]) -> Partition:
    if not groups:
        return part
    return replace(
        part,
        nodes=part.nodes or sum(group.count for group in groups),
        gpus_per_node=max(sum(count for _, count in group.gpus) for group in groups),
        gpu_types=tuple(dict.fromkeys(kind for group in groups for kind, _ in group.gpus if kind)),
        cpus_per_node=max(group.cpus for group in groups),
        memory_per_node=max(group.memory for group in groups),
    )


def _node_group(line: str) -> NodeGroup | None:
    parts = [part.strip() for part in line.split("|", 4)]
    if len(parts) != 5 or not parts[0]:
        return None
    numbers = [_count(part) for part in parts[1:4]]
    count, cpus, memory = (number if number is not None else -1 for number in numbers)
    if min(count, cpus, memory) < 0:
        return None
    return NodeGroup(parts[0], count, cpus, memory, parse_gpus(parts[4]))


def _entries(gres: str) -> list[str]:
    """The entries of a gres list; what stands in parentheses (sockets, indices) is left out, commas and all."""
    plain = re.sub(r"\([^()]*\)", "", gres)
    return [entry for entry in plain.split(",") if entry]


def _count(text: str) -> int | None:
    found = _COUNT.fullmatch(text.strip())
    return int(found[1]) * _MULTIPLE[found[2].upper()] if found else None


def _first_number(text: str) -> int | None:
    found = re.match(r"\d+", text.strip())
    return int(found[0]) if found else None
