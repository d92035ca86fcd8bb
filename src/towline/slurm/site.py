"""What a cluster says of itself (`scripts/facts.sh`)."""

from __future__ import annotations

import re
from dataclasses import replace

from towline.models.site import NodeKind, Partition, SiteFacts
from towline.slurm.accounting import parse_associations, parse_qoses
from towline.slurm.durations import parse_limit
from towline.slurm.frames import Frame, is_complete, parse_frames

DEFAULT_MESSAGE_TIMEOUT = 10  # seconds, slurm.conf(5)

_CONFIG = re.compile(r"^(\w+)\s*=\s?(.*?)\s*$", re.MULTILINE)
_PAIR = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")
_COUNT = re.compile(r"(\d+)([KMGTP]?)\+?", re.IGNORECASE)
_MULTIPLE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


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
    associations, qoses, groups, user, licenses, runtimes = (
        _optional(frames, name) for name in ("associations", "qoses", "groups", "user", "licenses", "runtimes")
    )
    return SiteFacts(
        cluster=settings.get("ClusterName", ""),
        version=settings.get("SLURM_VERSION", ""),
        partitions=parse_partitions(partitions, nodes),
        message_timeout=_first_number(settings.get("MessageTimeout", "")) or DEFAULT_MESSAGE_TIMEOUT,
        asked=asked,
        enforces=_enforced(settings.get("AccountingStorageEnforce", "")),
        part_limits=settings.get("EnforcePartLimits", "NO").upper(),
        default_account=next(iter((user or "").split()), ""),
        associations=None if associations is None else parse_associations(associations),
        qoses=None if qoses is None else parse_qoses(qoses),
        groups=None if groups is None else tuple(groups.split()),
        licenses=None if licenses is None else parse_licenses(licenses),
        max_array_size=_first_number(settings.get("MaxArraySize", "")),
        runtimes=None if runtimes is None else tuple(runtimes.split()),
    )


def _enforced(words: str) -> tuple[str, ...]:
    """What AccountingStorageEnforce stands for; `all` leaves out only what slurm.conf(5) says."""
    found = _list(words.lower())
    return ("associations", "limits", "qos", "wckeys") if found is None else found


def parse_licenses(scontrol: str) -> tuple[tuple[str, int], ...]:
    """Names and totals from `scontrol --oneliner show licenses`."""
    found = re.findall(r"LicenseName=(\S+)\s.*?Total=(\d+)", scontrol)
    return tuple((name, int(total)) for name, total in found)


def parse_config(scontrol: str) -> dict[str, str]:
    """Settings from `scontrol show config`."""
    return dict(_CONFIG.findall(scontrol))


def parse_partitions(scontrol: str, sinfo: str) -> tuple[Partition, ...]:
    """Partitions from `scontrol -o show partition` and `sinfo` (`towline.slurm.commands.SINFO_FORMAT`)."""
    groups = [group for line in sinfo.splitlines() if (group := parse_node_line(line))]
    partitions = [_partition(line) for line in scontrol.splitlines()]
    return tuple(
        _with_nodes(part, tuple(kind for name, kind in groups if name == part.name)) for part in partitions if part
    )


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
        max_cpus_per_node=_first_number(pairs.get("MaxCPUsPerNode", "")),
        qos=pairs["QoS"] if pairs.get("QoS", "N/A") != "N/A" else "",
        accounts=_list(pairs.get("AllowAccounts", "ALL")),
        qoses=_list(pairs.get("AllowQos", "ALL")),
        groups=_list(pairs.get("AllowGroups", "ALL")),
        denied_accounts=_list(pairs.get("DenyAccounts", "")) or (),
        denied_qoses=_list(pairs.get("DenyQos", "")) or (),
        preempt_mode=pairs.get("PreemptMode", "OFF"),
        priority_tier=_first_number(pairs.get("PriorityTier", "")) or 1,
    )


def _list(text: str) -> tuple[str, ...] | None:
    """The words of a list; None where it stands for everything."""
    return None if text.upper() == "ALL" else tuple(word.strip() for word in text.split(",") if word.strip())


def _optional(frames: tuple[Frame, ...], name: str) -> str | None:
    """The answer to a query that a site may refuse; None when it did."""
    try:
        return _answer(frames, name)
    except ValueError:
        return None


def _with_nodes(part: Partition, groups: tuple[NodeKind, ...]) -> Partition:
    if not groups:
        return part
    return replace(
        part,
        nodes=part.nodes or sum(group.count for group in groups),
        gpus_per_node=max(sum(count for _, count in group.gpus) for group in groups),
        gpu_types=tuple(dict.fromkeys(kind for group in groups for kind, _ in group.gpus if kind)),
        cpus_per_node=max(group.cpus for group in groups),
        memory_per_node=max(group.memory for group in groups),
        kinds=groups,
    )


def parse_node_line(line: str) -> tuple[str, NodeKind] | None:
    """Partition and nodes of a line; the features before the gres may be missing, as in older recordings."""
    parts = [part.strip() for part in line.split("|")]
    if len(parts) not in (5, 6) or not parts[0]:
        return None
    numbers = [_count(part) for part in parts[1:4]]
    count, cpus, memory = (number if number is not None else -1 for number in numbers)
    if min(count, cpus, memory) < 0:
        return None
    features = () if len(parts) == 5 or parts[4] == "(null)" else _list(parts[4]) or ()
    return parts[0], NodeKind(count, cpus, memory, parse_gpus(parts[-1]), features)


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
