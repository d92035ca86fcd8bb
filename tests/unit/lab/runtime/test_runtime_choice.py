"""Using a given Pyxis and Enroot in place of the stand-ins, and going back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from towline.lab import LabError, RuntimeChoice
from towline.lab.layout import Layout
from towline.lab.runtime import STAND_INS, build, check, choice, choose, in_use

ENROOT = """#!/bin/bash
# config::init is what a real one begins with:
config::init() { :; }
config::init "{prefix}/etc/enroot/enroot.conf"
export ENROOT_VERSION="9.8.7"
echo "$ENROOT_DATA_PATH $ENROOT_CACHE_PATH"
enroot-helper
ls "$ENROOT_SYSCONF_PATH/hooks.d" "$ENROOT_SYSCONF_PATH/mounts.d"
"""


def hidden_nowhere(_path: Path) -> str:
    return ""


def hidden_by_hosts(_path: Path) -> str:
    return "/usr/local/bin"


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimeChoice:
    """Stand-ins for real ones, in a prefix that the lab's hosts are taken to see."""
    monkeypatch.setattr(choice, "hidden_inside", hidden_nowhere)
    prefix = tmp_path / "prefix"
    for folder in ("bin", "etc/enroot/hooks.d", "etc/enroot/mounts.d"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "etc/enroot/hooks.d/10-own.sh").touch()
    (prefix / "etc/enroot/mounts.d/10-own.fstab").touch()
    (prefix / "bin/enroot").write_text(ENROOT.replace("{prefix}", str(prefix)))
    (prefix / "bin/enroot-helper").write_text("#!/bin/sh\necho helped\n")
    for command in (prefix / "bin").iterdir():
        command.chmod(0o755)
    (prefix / "spank_pyxis.so").write_bytes(b"\x7fELF\0pyxis: version v7.6.5\0")
    return RuntimeChoice.of(prefix / "spank_pyxis.so", prefix)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "lab")


def plugstack(layout: Layout) -> list[str]:
    return (layout.etc / "plugstack.conf.d" / "pyxis.conf").read_text().split()


def test_a_given_runtime_is_used_until_none_is(layout: Layout, given: RuntimeChoice) -> None:
    choose(layout, given)
    build(layout)
    assert plugstack(layout)[1] == str(given.pyxis)
    assert check(layout) == ""
    assert in_use(layout) == f"Pyxis 7.6.5 ({given.pyxis}), Enroot 9.8.7 ({given.enroot})"

    choose(layout, STAND_INS)
    assert check(layout) == "not up to date"
    build(layout)
    assert Path(plugstack(layout)[1]).is_relative_to(layout.runtime)
    assert in_use(layout) == "stand-in for Pyxis 0.24.0, stand-in for Enroot 4.1.2"
    version = subprocess.run([layout.runtime / "bin" / "enroot", "version"], capture_output=True, text=True, check=True)
    assert version.stdout == "4.1.2\n"


def test_choosing_the_same_again_changes_nothing(layout: Layout, given: RuntimeChoice) -> None:
    choose(layout, given)
    build(layout)
    choose(layout, given)
    assert check(layout) == ""


def test_each_can_be_given_alone(layout: Layout, given: RuntimeChoice) -> None:
    choose(layout, RuntimeChoice(enroot=given.enroot))
    build(layout)
    assert in_use(layout) == f"stand-in for Pyxis 0.24.0, Enroot 9.8.7 ({given.enroot})"
    assert Path(plugstack(layout)[1]).is_relative_to(layout.runtime)


@pytest.mark.parametrize("folder", ["bin", "gpu-bin"])
def test_a_given_enroot_has_the_labs_settings_and_its_own_hooks(
    layout: Layout, given: RuntimeChoice, folder: str
) -> None:
    choose(layout, given)
    build(layout)
    environment = {"PATH": "/usr/bin:/bin", "ENROOT_CACHE_PATH": "/of/the/user"}
    command = [layout.runtime / folder / "enroot"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    data, cache, helped, *etc = done.stdout.split()
    assert data.startswith(f"{layout.root}/hosts/")
    assert (cache, helped) == ("/of/the/user", "helped")
    assert {"10-own.sh", "10-own.fstab", "50-lab-gpus.fstab"} <= set(etc)
    assert "10-system.fstab" not in etc


def test_the_choice_is_a_file_that_can_be_read(layout: Layout, given: RuntimeChoice) -> None:
    choose(layout, given)
    saved = json.loads((layout.state / "runtime.json").read_text())
    assert saved == {"pyxis": str(given.pyxis), "enroot": str(given.enroot)}


@pytest.mark.parametrize("text", ["", "{"])
def test_a_choice_that_cannot_be_read_is_none(layout: Layout, text: str) -> None:
    layout.state.mkdir(parents=True)
    (layout.state / "runtime.json").write_text(text)
    assert choice.load(layout) == STAND_INS


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no Pyxis plugin"):
        RuntimeChoice.of(pyxis=tmp_path / "nope.so")
    with pytest.raises(LabError, match="no Enroot"):
        RuntimeChoice.of(enroot=tmp_path)


def test_what_hosts_do_not_see_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "hidden_inside", hidden_by_hosts)
    (tmp_path / "enroot").touch()
    with pytest.raises(LabError, match="would not see") as refused:
        RuntimeChoice.of(enroot=tmp_path / "enroot")
    assert "/usr/local/bin" in str(refused.value.why)


def test_a_runtime_that_was_removed_is_named_all_the_same(layout: Layout) -> None:
    choose(layout, RuntimeChoice(pyxis=Path("/opt/gone.so")))
    build(layout)
    assert in_use(layout).startswith("Pyxis that is gone (/opt/gone.so)")
