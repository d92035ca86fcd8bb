"""The package keeps the house's rules, and the checker finds each kind of breach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.rules import MAY_IMPORT, findings

PROGRAMS = "only lab and remote and runner and stager may start programs"
PACKAGE = Path(__file__).parents[2] / "src" / "towline"


def test_the_house_keeps_its_rules() -> None:
    broken = findings(PACKAGE)
    assert not broken, "\n" + "\n".join(str(found) for found in broken)


def test_every_room_of_the_table_exists() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(MAY_IMPORT) - {""}


@pytest.mark.parametrize(
    ("room", "source", "rule"),
    [
        ("slurm", "from towline.remote import base", "slurm must not import remote; it may import models"),
        ("slurm", "from towline import engine", "slurm must not import engine; it may import models"),
        ("slurm", "import towline.engine.store", "slurm must not import engine; it may import models"),
        ("slurm", "from ..engine import store", "slurm must not import engine; it may import models"),
        (
            "models",
            "def f():\n    from towline.slurm import x",
            "models must not import slurm; it may import no other room",
        ),
        ("engine", "from towline.lab import up", "engine must not import lab"),
        ("engine", "from towline.tao import x", "engine must not import tao"),
        ("nowhere", "x = 1", "there is no room 'nowhere'"),
        ("engine", "import subprocess", f"{PROGRAMS.removesuffix('start programs')}import subprocess"),
        (
            "cli",
            "import asyncio\nasyncio.create_subprocess_exec('ls')",
            PROGRAMS,
        ),
        (
            "cli",
            "from asyncio import create_subprocess_exec",
            PROGRAMS,
        ),
        ("engine", "loop.subprocess_exec(p)", PROGRAMS),
        ("engine", "import os\nos.system('ls')", PROGRAMS),
        ("engine", "import os\nos.execv('ls', [])", PROGRAMS),
        ("engine", "from pydantic import BaseModel", "only config and models and tao may import pydantic"),
        ("cli", "import sqlite3", "only engine and tao may import sqlite3"),
        ("engine", "from rich.console import Console", "only cli may import rich"),
        ("slurm", "import socket", "slurm does no input or output and must not import socket"),
        ("slurm", "x = open('f')", "slurm does no input or output and must not use open"),
        ("launch", "import os\nos.environ['X']", "launch does no input or output and must not use os.environ"),
        ("storage", "from os import getenv", "storage does no input or output and must not use os.getenv"),
        (
            "storage",
            "from pathlib import Path\nPath('x')",
            "storage does no input or output: use pathlib.PurePosixPath, not Path",
        ),
        (
            "storage",
            "def f(x):\n    return x.joinpath('y').write_text('')",
            "storage does no input or output and must not",
        ),
        ("models", "from importlib.resources import files", "models has no package data to read"),
        ("engine", "print('x')", "engine does not print"),
        ("remote", "import sys\nsys.stderr.write('x')", "remote does not print"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, room: str, source: str, rule: str) -> None:
    file = tmp_path / "towline" / room / "part.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    found = [str(item) for item in findings(tmp_path / "towline")]
    line = source.count("\n") + 1
    assert any(text.startswith(f"towline/{room}/part.py:{line}: {rule}") for text in found), found


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("slurm", "from importlib.resources import files\nfrom towline.models import job\nfrom . import parse"),
        ("launch", "import os.path\nfrom pathlib import PurePosixPath\nos.path.join('a', 'b')"),
        ("slurm", "from pathlib import Path\nfiles: dict[str, bytes | Path] = {}"),
        ("storage", "from importlib.resources import files\nfiles('x').joinpath('y.sh').read_text()"),
        ("remote", "import asyncio\nimport subprocess\nasyncio.create_subprocess_exec('ssh')"),
        ("cli", "import os\nos.execvp('tail', [])"),
        ("cli", "from towline.engine import cluster\nfrom towline.lab import up\nprint('x')"),
        ("engine", "import sqlite3\nfrom pathlib import Path\nfrom towline.remote import base\nreopen = dict.open"),
    ],
)
def test_what_is_allowed_is_not_found(tmp_path: Path, room: str, source: str) -> None:
    file = tmp_path / "towline" / room / "part.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)
    assert findings(tmp_path / "towline") == []
