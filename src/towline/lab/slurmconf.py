"""Slurm's configuration files and the login hosts' sshd_config, rendered from the layout."""

from __future__ import annotations

import functools
from pathlib import Path

from towline.lab import keys, overrides, process
from towline.lab.accounts import system_user
from towline.lab.files import holds, replace
from towline.lab.kernel import has_cgroup_v1
from towline.lab.layout import (
    CLOUD_NODE,
    CPU_NODE,
    CTL,
    FAKE_GPUS,
    GPU_NODES,
    GPU_TYPE,
    GPUS_PER_NODE,
    LOGINS,
    NODES,
    STATIC_NODES,
    Layout,
)

_HERE = Path(__file__).parent
SLURM_FILES = ("slurm.conf", "gres.conf", "cgroup.conf", "plugstack.conf", "slurmdbd.conf")

NO_CGROUPS = (
    "no version 1 control groups here: memory limits are not enforced, so no job is ever killed for memory, "
    "and processes are tracked by /proc"
)
"""What the fallback costs, as `lab up` and `lab status` say it."""


@functools.cache
def slurm_version() -> tuple[int, int]:
    """Slurm's year and month, e.g. (22, 5): configuration files differ a little between versions."""
    year, month = process.run(["slurmctld", "-V"]).stdout.split()[-1].split(".")[:2]
    return int(year), int(month)


def render(layout: Layout, *, cgroup_v1: bool, version: tuple[int, int]) -> dict[str, str]:
    """Every configuration file by its name in etc/."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - configuration files, not HTML
        loader=FileSystemLoader(_HERE / "templates"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    values: dict[str, object] = {
        "root": layout.root,
        "cgroup_v1": cgroup_v1,
        "slurm_version": version,
        "ctl": CTL,
        "nodes": NODES,
        "static_nodes": STATIC_NODES,
        "gpu_nodes": ",".join(node.name for node in GPU_NODES),
        "cpu_node": CPU_NODE,
        "cloud_node": CLOUD_NODE,
        "gpu_type": GPU_TYPE,
        "gpus_per_node": GPUS_PER_NODE,
        "gpu_files": f"{FAKE_GPUS[0].parent}/fakegpu[0-{GPUS_PER_NODE - 1}]",
    }
    files = {name: environment.get_template(f"{name}.j2").render(values) for name in SLURM_FILES}
    sshd = environment.get_template("sshd_config.j2")
    files |= {f"sshd-{host.name}.conf": sshd.render(host_key=keys.host_key(layout, host)) for host in LOGINS}
    return files


def outdated(layout: Layout) -> str:
    """The name of a file that is missing or not as this version writes it; empty when there is none."""
    for name, text in _rendered(layout).items():
        if not holds(layout.etc / name, text):
            return name
    return next((script.name for script in _scripts() if not holds(layout.bin / script.name, script.read_text())), "")


def write(layout: Layout) -> bool:
    """Write the configuration files and the scripts that Slurm and the hosts run; True when Slurm's own changed."""
    slurm = system_user("slurm")
    changed = False
    for name, text in _rendered(layout).items():
        secret = name == "slurmdbd.conf"  # slurmdbd insists
        written = replace(layout.etc / name, text, 0o600 if secret else 0o644, slurm if secret else (0, 0))
        changed |= written and name in SLURM_FILES
    for script in _scripts():
        replace(layout.bin / script.name, script.read_text(), 0o755)
    return changed


def text(layout: Layout, name: str) -> str:
    """A configuration file as it is now; empty when it is not there."""
    path = layout.etc / name
    return path.read_text() if path.exists() else ""


def _rendered(layout: Layout) -> dict[str, str]:
    files = render(layout, cgroup_v1=has_cgroup_v1(), version=slurm_version())
    return {name: overrides.apply(layout, name, text) for name, text in files.items()}


def _scripts() -> list[Path]:
    return sorted((_HERE / "scripts").glob("*.sh"))
