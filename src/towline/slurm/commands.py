"""Slurm's command lines as argument lists, and the fields that are asked for.

Every field has a fixed vocabulary or comes last. Times are seconds since 1970 if `SLURM_TIME_FORMAT=%s` is set, which
`scripts/common.sh` does; it also takes away SLURM_*, SBATCH_*, SQUEUE_*, SACCT_* and the like, which would change
what the commands do.
"""

from __future__ import annotations

from collections.abc import Iterable

SQUEUE_FORMAT = "%i|%T|%V|%S|%e|%D|%N|%r"
"""Id, state, submit, start, end, number of nodes, nodes, reason (squeue(1), `--format`). Of own jobs `|%Z` follows, the
working directory: a job is known by it when Slurm has used its id again."""

SACCT_FIELDS = "JobID,State,ExitCode,Submit,Start,End,NodeList"
"""Fields of `sacct --format`, printed with `--parsable2`; of own jobs `WorkDir` follows."""

SINFO_FORMAT = "%R|%D|%c|%m|%f|%G"
"""Partition, number of nodes, CPUs, MiB, features and gres of a group of equal nodes (sinfo(1), `--format`)."""

FREE_FORMAT = "%R|%D|%t|%c|%m|%G"
"""Partition, number of nodes, state, CPUs, MiB and gres of a group of equal nodes (sinfo(1), `--format`)."""

MAX_IDS = 500
"""Ids in one query; sites complain about longer ones and some truncate them."""

MAX_LINE = 32_000
"""Bytes of an id list, far below the 128 KiB that Linux takes for one argument."""


def sbatch(script: str, dependency: str = "") -> tuple[str, ...]:
    """Submit the script; everything else stands in its directives.

    Args:
        script: its path.
        dependency: what this submission alone has to wait for; it takes the place of the script's own.
    """
    waits = (f"--dependency={dependency}", "--kill-on-invalid-dep=yes") if dependency else ()
    return ("sbatch", "--parsable", *waits, script)


def squeue(ids: Iterable[str], cluster: str = "", user: str = "") -> tuple[str, ...]:
    """Ask for these jobs, also those that ended within the controller's MinJobAge; `scripts/poll.sh` does the same.

    Args:
        ids: Slurm's ids.
        cluster: for `-M`; empty for the one that answers by itself.
        user: whose jobs; anybody's when empty.
    """
    fields = f"{SQUEUE_FORMAT}|%Z" if user else SQUEUE_FORMAT
    options = (*_of(user), "--noheader", "--all", "--states=all", f"--format={fields}")
    return ("squeue", *_at(cluster), *options, f"--jobs={','.join(ids)}")


def sacct(ids: Iterable[str], cluster: str = "", user: str = "") -> tuple[str, ...]:
    """Ask accounting for these jobs' allocations, with the runs before a requeue; `scripts/poll.sh` does the same."""
    fields = f"{SACCT_FIELDS},WorkDir" if user else SACCT_FIELDS
    options = (*_of(user), "--allocations", "--duplicates", "--noheader", "--parsable2", f"--format={fields}")
    return ("sacct", *_at(cluster), *options, f"--jobs={','.join(ids)}")


def scancel(ids: Iterable[str], cluster: str = "") -> tuple[str, ...]:
    """Cancel these jobs."""
    return ("scancel", *_at(cluster), *ids)


def show_config() -> tuple[str, ...]:
    """Ask for the cluster's configuration."""
    return ("scontrol", "show", "config")


def show_partitions() -> tuple[str, ...]:
    """Ask for the partitions, one a line."""
    return ("scontrol", "--oneliner", "show", "partition")


def sinfo() -> tuple[str, ...]:
    """Ask what nodes the partitions have, equal nodes grouped."""
    return ("sinfo", "--noheader", "--exact", "--all", f"--format={SINFO_FORMAT}")


def chunks(ids: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """The ids, without repeats and in order, in lists that fit one query each."""
    lists: list[tuple[str, ...]] = []
    current: list[str] = []
    size = 0
    for job_id in dict.fromkeys(ids):
        if current and (len(current) == MAX_IDS or size + len(job_id) + 1 > MAX_LINE):
            lists.append(tuple(current))
            current, size = [], 0
        current.append(job_id)
        size += len(job_id) + 1
    return (*lists, tuple(current)) if current else tuple(lists)


def _of(user: str) -> tuple[str, ...]:
    return (f"--user={user}",) if user else ()


def _at(cluster: str) -> tuple[str, ...]:
    return (f"--clusters={cluster}",) if cluster else ()
