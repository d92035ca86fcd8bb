"""Where `--secret` takes values from, and that no command shows them."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.unit.cli.fake_cluster import FakeCluster
from towline.engine import redaction

Towline = Callable[..., Any]
VALUE = "s3cret-value"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set[str]())
    monkeypatch.delenv("KEY", raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], str]:
    """The package `keyring`, with these entries."""
    entries: dict[tuple[str, str], str] = {}
    module: Any = types.ModuleType("keyring")
    module.__spec__ = types.SimpleNamespace()

    def get_password(service_name: str, username: str) -> str | None:
        return entries.get((service_name, username))

    module.get_password = get_password
    monkeypatch.setitem(sys.modules, "keyring", module)
    return entries


def submit(towline: Towline, *args: str) -> Any:
    return towline("run", "--detach", *args, "--", "true")


def test_a_variable_of_the_same_or_another_name(
    towline: Towline, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", VALUE)
    monkeypatch.setenv("OTHER", "of the other")
    assert submit(towline, "--secret", "KEY", "--secret", "SECOND=env:OTHER").status == 0
    assert cluster.secrets == {"KEY": VALUE, "SECOND": "of the other"}
    assert cluster.specs[0].secrets == ("KEY", "SECOND")


def test_taos_own_file_of_variables(
    towline: Towline, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".config/tao").mkdir(parents=True)
    (tmp_path / ".config/tao/.env").write_text(f"OTHER=x\nexport KEY='{VALUE}'\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert submit(towline, "--secret", "KEY").status == 0
    assert cluster.secrets == {"KEY": VALUE}
    monkeypatch.setenv("KEY", "of the environment")
    assert submit(towline, "--secret", "KEY").status == 0
    assert cluster.secrets == {"KEY": "of the environment"}


@pytest.mark.parametrize("content", [b"in the file", b"in the file\n", b"in the file\r\n"])
def test_a_file_without_the_end_of_its_last_line(
    towline: Towline, cluster: FakeCluster, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "key").write_bytes(content)
    assert submit(towline, "--secret", f"KEY=file:{tmp_path}/key").status == 0
    assert cluster.secrets == {"KEY": b"in the file"}


def test_the_keyring(
    towline: Towline, cluster: FakeCluster, keyring: dict[tuple[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keyring.update({("towline", "KEY"): "own", ("ngc", "KEY"): "of ngc"})
    assert submit(towline, "--secret", "KEY=keyring").status == 0
    assert cluster.secrets == {"KEY": "own"}
    assert submit(towline, "--secret", "KEY=keyring:ngc").status == 0
    assert cluster.secrets == {"KEY": "of ngc"}
    assert submit(towline, "--secret", "KEY").status == 0
    assert cluster.secrets == {"KEY": "own"}
    monkeypatch.setenv("KEY", VALUE)
    assert submit(towline, "--secret", "KEY").status == 0
    assert cluster.secrets == {"KEY": VALUE}


def test_a_person_is_asked_at_a_terminal(
    towline: Towline, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, object]]] = []

    def prompt(text: str, **how: object) -> str:
        asked.append((text, how))
        return VALUE

    monkeypatch.setattr(click, "prompt", prompt)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    for words in (["--secret", "KEY"], ["--secret", "KEY=prompt"]):
        assert submit(towline, *words).status == 0
        assert cluster.secrets == {"KEY": VALUE}
    assert asked == [("Value of KEY", {"hide_input": True, "err": True})] * 2
    assert submit(towline, "--no-input", "--secret", "KEY").status == 64
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    assert submit(towline, "--secret", "KEY").status == 64
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("KEY", 64, "KEY has no value, and nobody can be asked"),
        ("KEY=env:NOT_SET_HERE", 64, "the variable NOT_SET_HERE is not set"),
        ("KEY=file:/nowhere/key", 78, "/nowhere/key"),
        ("KEY=keyring", 78, "`keyring` is not installed"),
        ("KEY=", 64, "does not say where the value is"),
        ("KEY=env:", 64, "does not say where the value is"),
        (f"KEY={VALUE}", 64, "does not say where the value is"),
        (f"KEY=env{VALUE}", 64, "does not say where the value is"),
        ("1KEY", 64, "'1KEY' is not a name"),
        (f"my-key={VALUE}", 64, "--secret needs a name"),
    ],
)
def test_what_gives_no_value_is_an_error_that_shows_none(
    towline: Towline, cluster: FakeCluster, words: str, status: int, told: str
) -> None:
    ran = submit(towline, "--json", "--secret", words)
    assert ran.status == status
    assert told in ran.stderr
    assert VALUE not in ran.stdout + ran.stderr
    assert cluster.submitted == 0


def test_a_dry_run_needs_no_values(towline: Towline, cluster: FakeCluster) -> None:
    ran = towline("run", "--dry-run", "--secret", "KEY", "--", "true")
    assert ran.status == 0
    assert "the values of KEY" in ran.stdout


def test_tokens_are_hidden_in_what_is_printed(towline: Towline, cluster: FakeCluster) -> None:
    token = "hf_" + "aB3" * 12
    for words in (["--json"], []):
        ran = towline("run", "--dry-run", *words, "--env", f"KEY={token}", "--", "curl", f"Key: {token}")
        assert token not in ran.stdout + ran.stderr


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("command", ["plan", "plan --json", "run --dry-run", "run --dry-run --json"])
@pytest.mark.parametrize("option", ["KEY", "KEY=env:KEY", "KEY=file:value"])
def test_a_plan_shows_no_value_that_the_shell_put_into_the_command(
    towline: Towline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEY", VALUE)
    Path("value").write_text(f"{VALUE}\n")
    done = towline(*command.split(), "--secret", option, "--", "curl", "-H", f"Key: {VALUE}")
    assert done.status == 65
    assert "the value of the secret KEY stands in the job's description" in done.stderr + done.stdout
    assert VALUE not in done.stderr + done.stdout


@pytest.mark.usefixtures("cluster")
def test_a_plan_needs_no_value_and_asks_nobody(towline: Towline) -> None:
    assert towline("plan", "--secret", "KEY", "--", "true").status == 0
    assert towline("run", "--dry-run", "--secret", "KEY=prompt", "--", "true").status == 0


def test_programs_that_are_started_do_not_inherit_the_values(
    towline: Towline, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", VALUE)
    monkeypatch.setenv("OTHER", VALUE)
    assert submit(towline, "--secret", "KEY", "--secret", "SECOND=env:OTHER").status == 0
    assert cluster.secrets == {"KEY": VALUE, "SECOND": VALUE}
    assert VALUE not in os.environ.values()
