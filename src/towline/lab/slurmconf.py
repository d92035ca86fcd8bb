"""Slurm's configuration files and the login hosts' sshd_config, rendered from the layout."""

from __future__ import annotations

import pwd
import shutil
from pathlib import Path

from towline.lab import keys
from towline.lab.files import write_in_place
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


def render(layout: Layout, *, cgroup_v1: bool) -> dict[str, str]:
    """Every configuration file by its name in etc/."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - configuration files, not HTML
        loader=FileSystemLoader(_HERE / "templates"), undefined=StrictUndefined, keep_trailing_newline=True
    )
    values: dict[str, object] = {
        "root": layout.root,
        "cgroup_v1": cgroup_v1,
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


def write(layout: Layout) -> None:
    """Write the configuration files and the scripts that Slurm and the hosts run."""
    slurm = pwd.getpwnam("slurm")
    for name, text in render(layout, cgroup_v1=has_cgroup_v1()).items():
        secret = name == "slurmdbd.conf"  # slurmdbd insists
        owner = (slurm.pw_uid, slurm.pw_gid) if secret else (0, 0)
        write_in_place(layout.etc / name, text, 0o600 if secret else 0o644, owner)
    for folder in (layout.bin, layout.etc / "plugstack.conf.d"):
        folder.mkdir(exist_ok=True)
    for script in (_HERE / "scripts").glob("*.sh"):
        shutil.copyfile(script, layout.bin / script.name)
        (layout.bin / script.name).chmod(0o755)


def runtime_in_use(layout: Layout) -> str:
    """The container runtime that Slurm's plugin stack names; `none` when it names none."""
    plugins = sorted((layout.etc / "plugstack.conf.d").glob("*.conf"))
    return ", ".join(path.stem for path in plugins) or "none"
