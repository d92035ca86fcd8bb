"""The public Python API: names that scripts import, and that come late so that the command line starts fast."""

from __future__ import annotations

import subprocess
import sys

import towline

PUBLIC = {
    "AsyncCluster",
    "AsyncJob",
    "Attempt",
    "Cluster",
    "Dependency",
    "Job",
    "JobRecord",
    "JobSpec",
    "JobState",
    "LogChoice",
    "Mail",
    "Mount",
    "Resources",
    "Resume",
    "Role",
    "TowlineError",
    "__version__",
    "read_spec",
}


def test_the_public_names_are_these() -> None:
    assert set(towline.__all__) == PUBLIC


def test_every_public_name_can_be_used() -> None:
    assert {name for name in PUBLIC if not hasattr(towline, name)} == set()


def test_other_names_are_missing_as_usual() -> None:
    assert not hasattr(towline, "Clutser")


def test_nothing_heavy_is_imported_for_help() -> None:
    heavy = {"pydantic", "jinja2", "rich", "sqlite3", "asyncio", "click"}
    code = (
        f"import sys; from towline.cli.main import main; main(['--help']); print(*sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
