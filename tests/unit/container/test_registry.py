"""The credentials file's editing, as the script does it on a login host: text in, text out."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline.container.registry import (
    Manifest,
    Verdict,
    check_call,
    credential_lines,
    login_call,
    machine_of,
    parse_login,
    parse_manifest,
    told_tags,
    verdict_of,
)
from towline.models.image import Image
from towline.slurm.doctor import Credentials


def line(machine: str, user: str = "u", word: str = "p") -> str:
    return f"machine {machine} login {user} password {word}\n"


PUBLIC = line("nvcr.io", "$oauthtoken", "sec/ret=") + line("authn.nvidia.com", "$oauthtoken", "sec/ret=")


def edited(before: str | None, lines: str, folder: Path) -> tuple[str, str]:
    """The file after a login, and what the script printed."""
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    file = home / ".config" / "enroot" / ".credentials"
    if before is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(before)
    call = login_call(lines)
    for name, content in call.files.items():
        assert isinstance(content, bytes)
        (work / name).write_bytes(content)
    (work / "script").write_text(call.script)
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "script"], cwd=work, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_text(), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        (None, line("a"), line("a")),
        ("", line("a"), line("a")),
        (line("b").rstrip("\n"), line("a"), line("b") + line("a")),
        (line("a", word="old") + "# end\n", line("a", word="new"), line("a", word="new") + "# end\n"),
        (line("a", word="1") + line("a", word="2"), line("a", word="3"), line("a", word="3")),
        (line("a", "other"), line("a"), line("a") + line("a", "other")),
        (line("nvcr.io", "$oauthtoken", "old"), PUBLIC, PUBLIC),
        ("# a\n\n  " + line("ab"), line("a"), "# a\n\n  " + line("ab") + line("a")),
    ],
)
def test_a_login_takes_the_place_of_the_same_and_comes_before_others(
    tmp_path: Path, before: str | None, lines: str, after: str
) -> None:
    found, _ = edited(before, lines, tmp_path)
    assert found == after


WORD = st.text("abc.$%\\\"'`-_/", min_size=1, max_size=6)
OTHER = st.one_of(
    st.builds("machine {} login {} password {}".format, WORD, WORD, WORD), st.text("# xyz\t", max_size=9), st.just("")
)


@settings(max_examples=25, deadline=None)
@given(st.lists(OTHER, max_size=6))
def test_other_lines_stay_as_they_are_and_no_secret_is_printed(others: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        before = "".join(f"{line}\n" for line in others)
        found, printed = edited(before, credential_lines("registry.example.org", "me", "sentinel"), Path(folder))
    lines = found.split("\n")
    lines.remove("machine registry.example.org login me password sentinel")
    assert "\n".join(lines) == before
    assert "sentinel" not in printed


def test_the_answer_has_registries_and_users(tmp_path: Path) -> None:
    _, printed = edited(None, PUBLIC, tmp_path)
    path = str(tmp_path / "home" / ".config" / "enroot" / ".credentials")
    assert parse_login(printed)[0] == Credentials(
        path, "600", (("nvcr.io", "$oauthtoken"), ("authn.nvidia.com", "$oauthtoken"))
    )


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles"
    real.write_text("# mine\n")
    link = tmp_path / "home" / ".config" / "enroot" / ".credentials"
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    edited(None, "machine a login u password p\n", tmp_path)
    assert link.is_symlink()
    assert real.read_text() == "# mine\nmachine a login u password p\n"


@pytest.mark.parametrize("key", ["", "a b", "a\nmachine x login y password z", "a\0", "$(rm x)", "$HOME"])
def test_keys_that_enroot_would_read_otherwise_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        credential_lines("registry.example.org", "me", key)


@pytest.mark.parametrize(
    ("registry", "machine"), [("nvcr.io", "nvcr.io"), ("a.b:5000", "a.b"), ("localhost", "localhost")]
)
def test_a_registrys_port_is_not_part_of_its_machine(registry: str, machine: str) -> None:
    assert machine_of(registry) == machine


@pytest.mark.parametrize(
    ("image", "args"),
    [
        ("ubuntu", ("registry-1.docker.io", "library/ubuntu", "latest", "")),
        ("nvidia/cuda:12", ("registry-1.docker.io", "nvidia/cuda", "12", "")),
        ("me@registry.lab:5001#demo:1", ("registry.lab:5001", "demo", "1", "me")),
        ("nvcr.io/nvidia/x@sha256:" + "a" * 64, ("nvcr.io", "nvidia/x", "sha256:" + "a" * 64, "")),
    ],
)
def test_which_manifest_is_asked_for(image: str, args: tuple[str, ...]) -> None:
    assert check_call(Image.parse(image)).args == args


def test_a_file_is_in_no_registry() -> None:
    with pytest.raises(ValueError, match="is a file"):
        check_call(Image.parse("/lustre/x.sqsh"))


def test_what_came_back_is_read() -> None:
    rows = ("file /c", "url http://r/v2/x", "first 401", "line r me", "code 200", "digest sha256:1")
    text = "@fact check\n" + "".join(f">{row}\n" for row in rows) + "!curl: x\n@end\n"
    found = parse_manifest(text)
    assert (found.found, found.first, found.line, found.words) == (True, 401, "r me", "curl: x")
    with pytest.raises(ValueError, match="broke off"):
        parse_manifest("@fact check\n>url x\n")


MONTHS = tuple(f"{year}.{month:02}-py3" for year in range(20, 27) for month in range(1, 13))


@pytest.mark.parametrize(
    ("wanted", "tags", "told"),
    [
        ("x", (), ""),
        ("latest", ("1.0", "1.1"), "Its tags are 1.0, 1.1."),
        ("24.07", ("latest", *MONTHS), "It has 85 tags, among them 24.07-py3, "),
        ("nightly", ("latest", *MONTHS), "It has 85 tags, among them latest, 26.12-py3, 26.11-py3, "),
    ],
)
def test_which_tags_there_are_is_told_with_the_likeliest_first(wanted: str, tags: tuple[str, ...], told: str) -> None:
    said = told_tags(wanted, tags)
    assert said.startswith(told)
    assert said.count(",") < 10


ASKED = Manifest(url="https://r.lab:5001/v2/", first=401, code=200, file="/c", line="r.lab me")


@pytest.mark.parametrize(
    ("said", "registry", "verdict", "why"),
    [
        ({}, "r.lab:5001", Verdict.RIGHT, ""),
        ({"code": 401}, "r.lab:5001", Verdict.WRONG, "r.lab:5001 answered 401"),
        ({"token": 401, "code": 401, "realm": "r.lab"}, "r.lab:5001", Verdict.WRONG, "r.lab answered 401"),
        ({"token": 200, "realm": "r.lab"}, "r.lab:5001", Verdict.RIGHT, ""),
        ({"token": 401, "realm": "t.lab", "line": ""}, "r.lab", Verdict.UNTRIED, "the line for that host counts"),
        ({"token": 200, "realm": "t.lab", "line": "t.lab me"}, "r.lab", Verdict.UNTRIED, "sends clients to t.lab"),
        ({"token": 200, "realm": "r.lab", "code": 401}, "r.lab", Verdict.UNTRIED, "r.lab answered 401 to the token"),
        (
            {"token": 200, "realm": "authn.nvidia.com", "line": "authn.nvidia.com $oauthtoken"},
            "nvcr.io",
            Verdict.RIGHT,
            "",
        ),
        ({"first": 0, "code": 0, "words": "curl: (7) no."}, "r", Verdict.UNTRIED, "not reached from the login host"),
        ({"first": 200}, "r", Verdict.UNTRIED, "lets anybody in"),
        ({"first": 503, "code": 503}, "r", Verdict.UNTRIED, "r answered 503"),
        ({"code": 500}, "r.lab:5001", Verdict.UNTRIED, "answered 500"),
        ({"curl": False}, "r", Verdict.UNTRIED, "no curl"),
    ],
)
def test_what_a_registry_said_to_a_key(said: dict[str, Any], registry: str, verdict: Verdict, why: str) -> None:
    found, words = verdict_of(dataclasses.replace(ASKED, **said), registry)
    assert found is verdict
    assert why in words if why else words == ""
