"""Help, usage errors, bugs, and what is imported: the command line as a whole."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.unit.cli.fake_cluster import FakeCluster, FakeJob, record
from towline.cli.app import app
from towline.cli.commands import COMMANDS

Towline = Callable[..., Any]
ENTRY = "import sys; from towline.cli.main import main; sys.exit(main())"


def leaves(group: click.Group, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command below a group, as the words that name it."""
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += leaves(command, (*words, name)) if isinstance(command, click.Group) else [(*words, name)]
    return found


@pytest.mark.parametrize("words", leaves(app), ids=" ".join)
def test_every_command_explains_itself_with_an_example_of_its_own(towline: Towline, words: tuple[str, ...]) -> None:
    ran = towline(*words, "--help")
    assert ran.status == 0
    assert "Example" in ran.stdout
    assert f"towline {' '.join(words)}" in ran.stdout.partition("Example")[2]


def test_every_summary_is_a_commands_own(towline: Towline) -> None:
    for name, (_, summary) in COMMANDS.items():
        command = app.get_command(click.Context(app), name)
        assert command is not None
        assert summary.endswith(".")
        assert f"  {name} " in towline("--help").stdout


@pytest.mark.parametrize("args", [[], ["-h"], ["--help"]])
def test_the_overview(towline: Towline, args: list[str]) -> None:
    ran = towline(*args)
    assert ran.status == 0
    assert ran.stdout.startswith("Usage: towline COMMAND")
    assert "Examples:" in ran.stdout


def test_help_imports_nothing_slow() -> None:
    code = (
        "import sys; before = {*sys.modules}; from towline.cli.main import main; main(['--help']);"
        "print(*{*sys.modules} - before, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stderr.split()).isdisjoint({"pydantic", "jinja2", "rich", "asyncio", "sqlite3", "click", "typing"})


def test_the_version(towline: Towline) -> None:
    plain = towline("version").stdout
    assert plain == towline("--version").stdout
    assert plain == f"towline {towline('version', '--json').document['version']}\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["wiat"], "Did you mean wait"),
        (["ps", "extra"], "extra"),
        (["status"], "JOB"),
        (["logs", "x", "--tail", "-1"], "--tail"),
        (["--nonsense"], "--nonsense"),
        (["results"], "JOB"),
        (["images"], "ls, prune, pull"),
    ],
)
def test_usage_errors_are_64_with_a_way_out(towline: Towline, args: list[str], says: str) -> None:
    ran = towline(*args)
    assert ran.status == 64
    assert ran.stdout == ""
    assert ran.stderr.startswith("towline: error: ")
    assert says in ran.stderr
    assert "--help" in ran.stderr


def test_usage_errors_are_documents_too(towline: Towline) -> None:
    ran = towline("ps", "--json", "--nonsense")
    assert ran.document["error"]["code"] == "usage"
    assert ran.document["exit"] == {"code": 64, "whose": "towline"}


def test_no_cluster_configured_is_78(towline: Towline) -> None:
    ran = towline("ps")
    assert ran.status == 78
    assert "towline lab up" in ran.stderr


def test_a_bug_is_one_line_and_a_private_report(towline: Towline, cluster: FakeCluster, directories: Path) -> None:
    cluster.refusal = ZeroDivisionError("oops\nmore")
    ran = towline("run", "--json", "--env", "TOKEN=s3cr3t", "--", "x")
    assert ran.status == 70
    assert "Traceback" not in ran.stderr
    assert "ZeroDivisionError: oops" in ran.stderr
    assert ran.document["error"]["code"] == "internal"
    (report,) = directories.glob("crashes/*.txt")
    assert str(report) in ran.stderr
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert "Traceback" in report.read_text()
    assert "s3cr3t" not in report.read_text()


def test_a_bug_without_a_place_for_the_report(towline: Towline, cluster: FakeCluster, directories: Path) -> None:
    directories.write_text("in the way")
    cluster.refusal = ZeroDivisionError()
    assert towline("run", "--", "x").status == 70


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["version", "--json"]])
def test_a_full_disk_is_an_error_and_no_bug(args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run([sys.executable, "-c", ENTRY, *args], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 74
    assert ran.stderr.decode() == "towline: error: the output could not be written\n  why: No space left on device\n"


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["version", "--json"]])
def test_a_closed_pipe_is_quiet(args: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        ran = subprocess.run([sys.executable, "-c", ENTRY, *args], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_names_from_the_cluster_are_cleaned_in_tables(towline: Towline, cluster: FakeCluster) -> None:
    cluster.known = [FakeJob(record(note="evil \x1b[2J\u202e"))]
    assert "evil \\x1b[2J\\u202e" in towline("ps").stdout
