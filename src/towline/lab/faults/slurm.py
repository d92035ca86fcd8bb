"""Faults of Slurm's daemons and what a site's policy may forbid."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from towline.lab import accounting, namespaces, overrides, slurmconf
from towline.lab.accounting import SLURMDBD
from towline.lab.controller import SLURMCTLD, start_nodes
from towline.lab.daemons import Daemon
from towline.lab.errors import LabError
from towline.lab.faults import packets, record
from towline.lab.faults.fault import Fault, Values, number
from towline.lab.faults.nodes import require_controller
from towline.lab.files import replace
from towline.lab.layout import CTL, NODES, Host, Layout

_CONFIG = "slurm.conf"
_FILTER = "job_submit.lua"
_SLURMCTLD_PORT = 6817
_SCONTROL = "/usr/bin/scontrol"
_REFUSALS = {
    "/usr/bin/sbatch": "sbatch: error: Batch job submission failed: Access/permission denied",
    "/usr/bin/salloc": "salloc: error: Job submit/allocate failed: Access/permission denied",
}
"""What a partition's AllocNodes would have them say. It is not used: Slurm takes the host from the credential, and the
lab's one munged makes all of them on `ctl`."""
_NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none\nAccountingStorageEnforce=\nAccountingStorageTRES=\n"


def _stop(daemon: Daemon, layout: Layout, _values: Values) -> None:
    daemon.stop(layout)


def _start(daemon: Daemon, layout: Layout, _values: Values) -> None:
    if daemon.check(layout):
        daemon.start(layout)


def _slow(layout: Layout, values: Values) -> None:
    packets.Relay("slow-slurmctld", CTL, _SLURMCTLD_PORT, int(values[0])).start(layout)


def _unslow(layout: Layout, _values: Values) -> None:
    packets.Relay("slow-slurmctld", CTL, _SLURMCTLD_PORT).stop(layout)


def _set(name: str, lines: str, layout: Layout, _values: Values) -> None:
    overrides.put(layout, _CONFIG, name, lines)
    _reconfigure(layout)


def _unset(name: str, layout: Layout, _values: Values) -> None:
    overrides.take(layout, _CONFIG, name)
    _reconfigure(layout)


def _reconfigure(layout: Layout) -> None:
    """Have the daemons read the configuration again; one that is down reads it when it starts."""
    if slurmconf.write(layout) and not SLURMCTLD.check(layout):
        namespaces.run(layout, CTL, ["scontrol", "reconfigure"])


def _lose_accounting(layout: Layout, _values: Values) -> None:
    overrides.put(layout, _CONFIG, "accounting-off", _NO_ACCOUNTING)
    _restart(layout)


def _regain_accounting(layout: Layout, _values: Values) -> None:
    overrides.take(layout, _CONFIG, "accounting-off")
    _restart(layout)


def _restart(layout: Layout) -> None:
    """Exchange slurmctld: it reads only at its start where its records are."""
    changed = slurmconf.write(layout)
    is_wanted = all(one.name != "slurmctld-down" for one in record.active(layout))
    if is_wanted and (changed or SLURMCTLD.check(layout)):
        SLURMCTLD.stop(layout)
        SLURMCTLD.start(layout)
        namespaces.run(layout, CTL, ["scontrol", "reconfigure"])  # the nodes' daemons


def _limit_queue(layout: Layout, values: Values) -> None:
    """By the time sacctmgr ends, slurmdbd has told slurmctld."""
    _require_accounting(layout)
    change = ["sacctmgr", "-i", "modify", "qos", accounting.DEFAULT_QOS, "set", f"MaxSubmitJobsPerUser={values[0]}"]
    namespaces.run(layout, CTL, change)


def _unlimit_queue(layout: Layout, _values: Values) -> None:
    _limit_queue(layout, ("-1",))


def _require_accounting(layout: Layout) -> None:
    require_controller(layout)
    if SLURMDBD.check(layout) or overrides.is_put(layout, _CONFIG, "accounting-off"):
        raise LabError("A limit is kept in accounting.", fix="Turn `slurmdbd-down` and `accounting-off` off first.")


def _forget_soon(layout: Layout, values: Values) -> None:
    _set("min-job-age", f"MinJobAge={values[0]}\n", layout, values)


def _forget_all(layout: Layout, values: Values) -> None:
    """Have slurmctld begin without its state; what runs is ended by the nodes, whose jobs it does not know."""
    require_controller(layout)
    if SLURMDBD.check(layout) and not overrides.is_put(layout, _CONFIG, "accounting-off"):
        raise LabError(
            "slurmctld does not start without its state and slurmdbd.", fix="Turn `slurmdbd-down` off first."
        )
    SLURMCTLD.stop(layout)
    for path in (layout.state / "slurmctld").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    overrides.put(layout, _CONFIG, "state-lost", f"FirstJobId={values[0]}\n")
    slurmconf.write(layout)
    SLURMCTLD.start(layout)
    namespaces.run(layout, CTL, ["scontrol", "reconfigure"])  # it waits longer to hear of the nodes
    start_nodes(layout)


def _wish(name: str, layout: Layout, values: Values) -> None:
    """Have slurmctld ask a script whether it takes a job."""
    replace(layout.etc / _FILTER, (Path(__file__).parent / _FILTER).read_text(), 0o644)
    _wishes(layout).mkdir(mode=0o755, exist_ok=True)
    (_wishes(layout) / name).touch(0o644)
    _set(name, "JobSubmitPlugins=lua\n", layout, values)


def _unwish(name: str, layout: Layout, values: Values) -> None:
    (_wishes(layout) / name).unlink(missing_ok=True)
    _unset(name, layout, values)


def _wishes(layout: Layout) -> Path:
    return layout.etc / "job_submit.d"


def _take_scontrol(layout: Layout, _values: Values) -> None:
    _cover(layout, _SCONTROL, Path("/dev/null"))  # a file that nobody can execute


def _give_scontrol(layout: Layout, _values: Values) -> None:
    _uncover(layout, _SCONTROL)


def _refuse_from_nodes(layout: Layout, _values: Values) -> None:
    for program, refusal in _REFUSALS.items():
        script = _refusal(layout, program)
        replace(script, f"#!/bin/sh\necho '{refusal}' >&2\nexit 1\n", 0o755)
        _cover(layout, program, script)


def _accept_from_nodes(layout: Layout, _values: Values) -> None:
    for program in _REFUSALS:
        _uncover(layout, program)
        _refusal(layout, program).unlink(missing_ok=True)


def _refusal(layout: Layout, program: str) -> Path:
    return layout.state / "faults" / f"refusing-{Path(program).name}"


def _cover(layout: Layout, program: str, by: Path) -> None:
    """Have every node see another file in place of a program."""
    for host in NODES:
        if namespaces.holder(layout, host) is not None and not _is_covered(layout, host, program):
            namespaces.run(layout, host, ["mount", "--bind", str(by), program])


def _uncover(layout: Layout, program: str) -> None:
    for host in NODES:
        if namespaces.holder(layout, host) is not None and _is_covered(layout, host, program):
            namespaces.run(layout, host, ["umount", program])


def _is_covered(layout: Layout, host: Host, program: str) -> bool:
    return namespaces.run(layout, host, ["mountpoint", "-q", program], check=False).returncode == 0


FAULTS = (
    Fault(
        "slurmdbd-down",
        "slurmdbd is away: sacct fails, records come later",
        partial(_stop, SLURMDBD),
        partial(_start, SLURMDBD),
    ),
    Fault(
        "slurmctld-down",
        "slurmctld is away: jobs go on, commands fail",
        partial(_stop, SLURMCTLD),
        partial(_start, SLURMCTLD),
    ),
    Fault(
        "slurmctld-slow",
        "slurmctld answers MS milliseconds late",
        _slow,
        _unslow,
        (number("MS", 1, 60_000),),
    ),
    Fault("accounting-off", "the cluster keeps no accounting: no sacct, no QOS", _lose_accounting, _regain_accounting),
    Fault(
        "queue-limit",
        "a user may have K jobs queued (MaxSubmitJobs of the default QOS)",
        _limit_queue,
        _unlimit_queue,
        (number("K", 0, 10_000),),
    ),
    Fault(
        "no-requeue",
        "jobs are not requeued unless they ask for it (JobRequeue=0)",
        partial(_set, "no-requeue", "JobRequeue=0\n"),
        partial(_unset, "no-requeue"),
    ),
    Fault(
        "min-job-age",
        "Slurm forgets an ended job after SECONDS (MinJobAge)",
        _forget_soon,
        partial(_unset, "min-job-age"),
        (number("SECONDS", 2, 1_000_000),),
    ),
    Fault(
        "state-lost",
        "slurmctld has lost its state: it knows no job, and its ids go on from ID",
        _forget_all,
        partial(_unset, "state-lost"),
        (number("ID", 1, 60_000_000),),
    ),
    Fault(
        "typed-gpus-only",
        "jobs that ask for GPUs without their type are refused",
        partial(_wish, "typed-gpus-only"),
        partial(_unwish, "typed-gpus-only"),
    ),
    Fault(
        "account-needed",
        "jobs that name no account are refused",
        partial(_wish, "account-needed"),
        partial(_unwish, "account-needed"),
    ),
    Fault(
        "no-submit-from-nodes",
        "Slurm takes no jobs from compute nodes",
        _refuse_from_nodes,
        _accept_from_nodes,
        ends_with_host=True,
    ),
    Fault(
        "no-scontrol-on-nodes",
        "nobody may run scontrol on a compute node",
        _take_scontrol,
        _give_scontrol,
        ends_with_host=True,
    ),
)
