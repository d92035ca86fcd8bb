"""Models of NGC by the module, and by the program where there is none: stand-ins that say what reached them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from towline.stager import ngc
from towline.stager.problems import Problem
from towline.stager.sources import source_of

URI = "ngc://nvidia/tao/net:1.0"
MODULE = """
import json, os
class ResourceNotFoundException(Exception): pass
class AccessDeniedException(Exception): pass
class Done:
    status = os.environ.get("STAND_IN_STATUS", "Completed.")
class Client:
    def __init__(self, api_key=None):
        self.registry = self.model = self
        self.told = None
    def configure(self, api_key=None, org_name=None, team_name=None):
        if "foreign" in api_key:
            raise ValueError("Invalid org. Choose from ['own'].")
        if "wrong" in api_key:
            raise ValueError("Invalid apikey for NGC service location [x]: " + api_key)
        self.told = [api_key, org_name, team_name]
    def download_version(self, target, destination="."):
        if "gone" in target:
            raise ResourceNotFoundException("no " + target)
        if self.told is None and "private" in target:
            raise AccessDeniedException("no")
        if not os.path.isdir(destination):
            raise Exception("The path: %r does not exist." % destination)
        name, _, version = target.rpartition("/")[2].partition(":")
        os.makedirs(os.path.join(destination, name + "_v" + version))
        with open(os.path.join(destination, name + "_v" + version, "told.pth"), "w") as file:
            json.dump(self.told, file)
        print("progress 50 %")
        return Done()
"""
PROGRAM = """#!/bin/sh
[ -d "$6" ] || { echo "The path: $6 does not exist."; exit 1; }
mkdir "$6/net_v1.0" && printf '%s' "$* $NGC_CLI_API_KEY" >"$6/net_v1.0/told.pth"
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that has the module; `-I` would not find it in a folder of this test's."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "ngcsdk.py").write_text(MODULE)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -I ] && shift\nPYTHONPATH={tmp_path}/site exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.path", [str(tmp_path / "site"), *sys.path])
    monkeypatch.setattr("sys.executable", str(python))


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ngc").write_text(PROGRAM)
    (tmp_path / "ngc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def told(folder: Path, uri: str = URI, **env: str) -> str:
    """What reached the stand-in."""
    found = source_of(uri, (), {"PATH": f"{folder}:/usr/bin:/bin", **env}).take(str(folder / "data"))
    assert found is not None
    (entry,) = found.entries
    return (folder / "data" / entry.path).read_text()


def problem(folder: Path, uri: str = URI, **env: str) -> Problem:
    with pytest.raises(Problem) as caught:
        told(folder, uri, **env)
    return caught.value


@pytest.mark.usefixtures("module", "program")
def test_the_module_comes_before_the_program(tmp_path: Path) -> None:
    assert json.loads(told(tmp_path, NGC_KEY="key")) == ["key", "nvidia", "tao"]
    assert json.loads(told(tmp_path, "ngc://nvidia/net:1.0", NGC_CLI_API_KEY="own")) == ["own", "nvidia", None]
    assert json.loads(told(tmp_path)) is None, "what is public needs no key"
    assert json.loads(told(tmp_path, NGC_KEY="foreign")) is None, "nor one of this organisation"


@pytest.mark.usefixtures("module", "program")
def test_a_site_that_wants_the_program_gets_it(tmp_path: Path) -> None:
    source = source_of(URI, ("ngc",), {"PATH": f"{tmp_path}:/usr/bin:/bin", "NGC_KEY": "key"})
    assert source.take(str(tmp_path / "data"))
    text = (tmp_path / "data/net_v1.0/told.pth").read_text()
    assert text == f"registry model download-version nvidia/tao/net:1.0 --dest {tmp_path}/data key"


@pytest.mark.usefixtures("program")
def test_without_the_module_the_program_brings_it_and_no_key_is_an_argument(tmp_path: Path) -> None:
    assert told(tmp_path, NGC_KEY="sesame").split() == [
        *("registry", "model", "download-version", "nvidia/tao/net:1.0", "--dest", f"{tmp_path}/data", "sesame")
    ], "the last word is its environment's"


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("uri", "env", "kind"),
    [
        ("ngc://nvidia/tao/gone:1", {}, "not-found"),
        ("ngc://nvidia/tao/private:1", {}, "credentials"),
        (URI, {"NGC_KEY": "wrong-sesame"}, "credentials"),
        (URI, {"STAND_IN_STATUS": "Incomplete."}, "network"),
    ],
)
def test_each_failure_is_of_its_kind_and_shows_no_key(tmp_path: Path, uri: str, env: dict[str, str], kind: str) -> None:
    found = problem(tmp_path, uri, **env)
    assert found.kind == kind
    assert "sesame" not in found.text


@pytest.mark.usefixtures("module")
def test_what_was_cut_off_is_brought_anew(tmp_path: Path) -> None:
    (tmp_path / "data/net_v1.0").mkdir(parents=True)
    (tmp_path / "data/net_v1.0/half").write_text("x")
    assert told(tmp_path) == "null"


def test_where_neither_is_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = problem(tmp_path)
    assert found.kind == "tool"
    assert "there is no program `ngc` on " in found.text
    assert "has no module `ngcsdk`" in found.text
    assert not ngc.has_module()


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("uri", ["ngc://net:1", "ngc://a/b/c/d:1", "ngc://--help/x", "ngc://"])
def test_what_names_no_model_is_told(tmp_path: Path, uri: str) -> None:
    assert problem(tmp_path, uri).kind == "names"
