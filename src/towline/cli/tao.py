"""`towline tao`: scripts for NVIDIA's TAO SDK."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from towline.cli.options import examples
from towline.models.errors import NotFound


@click.group(epilog=examples("towline tao run train.py --epochs 3"))
def tao() -> None:
    """Run scripts that are written for NVIDIA's TAO SDK; see docs/tao.md."""


@tao.command(
    epilog=examples("towline tao run train.py --epochs 3"),
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("script", metavar="SCRIPT")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
def run(*, script: str, arguments: tuple[str, ...]) -> None:
    """Run an unchanged script for which `tao_sdk` is Towline: its jobs are Towline's.

    The cluster is the one of TAO's variables (SLURM_USER, SLURM_HOSTNAME …), else a profile of yours.
    """
    if not Path(script).is_file():
        raise NotFound(f"there is no script {script}", fix="Give the path of a Python script.")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "towline.tao.script", script, *arguments])  # noqa: S606
