"""Building the runtime into a lab's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from towline.lab.layout import Layout
from towline.lab.runtime import build, check


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    layout = Layout(tmp_path_factory.mktemp("lab"))
    assert check(layout) == "not built"
    before = os.umask(0o077)
    build(layout)
    os.umask(before)
    return layout


def test_a_built_runtime_is_up_to_date(built: Layout) -> None:
    assert check(built) == ""


def test_slurm_is_told_where_the_plugin_is(built: Layout) -> None:
    words = (built.etc / "plugstack.conf.d" / "pyxis.conf").read_text().split()
    assert words[0] == "required"
    assert Path(words[1]).name == "spank_pyxis.so"
    assert Path(words[1]).is_file()


def test_only_hosts_with_gpus_get_their_commands(built: Layout) -> None:
    assert {path.name for path in (built.runtime / "bin").iterdir()} == {"enroot"}
    assert {path.name for path in (built.runtime / "gpu-bin").iterdir()} == {"enroot", "nvidia-smi", "dmesg"}


def test_everybody_can_read_it_whatever_the_umask(built: Layout) -> None:
    made = [*built.runtime.rglob("*"), *built.etc.rglob("*")]
    assert made
    assert [path for path in made if path.stat().st_mode & 0o044 != 0o044] == []


def test_building_again_changes_nothing(built: Layout) -> None:
    before = {path: path.stat().st_ino for path in built.runtime.rglob("*")}
    build(built)
    assert {path: path.stat().st_ino for path in built.runtime.rglob("*")} == before


def test_what_was_built_from_other_sources_is_out_of_date(built: Layout) -> None:
    stamp = built.runtime / "stamp"
    text = stamp.read_text()
    stamp.write_text("of another version\n")
    assert check(built) == "not up to date"
    stamp.write_text(text)
