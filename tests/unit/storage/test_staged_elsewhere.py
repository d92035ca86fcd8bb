"""Copies of data in a directory outside of the root: what jobs made and nobody uses may go, nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.slurm.calls import Call
from towline.storage.scripts import script
from towline.storage.usage import Usage, Wish, may_go, parse_usage

OLD = time.time() - 30 * 86400


class Site:
    """A root and a directory of copies beside it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.root, self.cache = home / "root", home / "shared cache"
        (self.root / "jobs").mkdir(parents=True)
        self.cache.mkdir()
        self.calls = 0
        self.queue()

    def queue(self, *lines: str) -> None:
        """Jobs as `NAME SCRIPT`."""
        names, scripts = (
            "".join(f"echo {x.split()[0]};" for x in lines),
            "".join(f"echo {x.split()[1]};" for x in lines),
        )
        (self.slurm.bin / "squeue").write_text(f"#!/bin/sh\ncase $* in *%o*) {scripts}: ;; *) {names}: ;; esac\n")

    def copy(self, name: str, note: str = "uri=s3://a\nslurm=7\n") -> Path:
        made = self.cache / name
        (made / "data").mkdir(parents=True)
        (made / "data" / "x").write_text("x")
        if note:
            (made / "note").write_text(note)
        for path in (made / "data", made):
            os.utime(path, (OLD, OLD))
        return made

    def job(self, root: Path, name: str, needs: str) -> None:
        folder = root / "jobs" / name / "script"
        folder.mkdir(parents=True)
        (folder / "needs").write_text(f"{needs}\n")
        (root / "jobs" / name / "attempts" / "1").mkdir(parents=True)

    def run(self, name: str, *args: str) -> str:
        self.calls += 1
        ran = self.slurm.run(Call(name, script(name), (str(self.root), "", *args)), self.home / f"call{self.calls}")
        assert ran.code == 0, ran
        return ran.out

    def usage(self) -> Usage:
        return parse_usage(self.run("usage", f"{self.root}/images", str(self.cache)))

    def may_go(self) -> list[str]:
        return [item.path for item in may_go(self.usage(), {}, (), Wish(86400))]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_copy_that_nobody_uses_goes(site: Site) -> None:
    made = site.copy("s3+a+0123456789+0123456789abcdef")
    assert site.may_go() == [str(made)]
    (item,) = site.usage().items
    assert item.kib > 0
    assert site.run("remove", str(made)) == f"removed {made}\n"
    assert list(site.cache.iterdir()) == []


@pytest.mark.parametrize("note", ["", "uri=s3://a\n", "mine\n"])
def test_what_no_job_of_this_project_made_stays(site: Site, note: str) -> None:
    made = site.copy("my+own", note)
    assert site.may_go() == []
    assert site.run("remove", str(made), str(site.home)) == f"used {made}\nused {site.home}\n"
    assert made.exists()


@pytest.mark.parametrize("other", [False, True])
def test_what_a_job_needs_stays_whatever_root_it_has(site: Site, other: bool) -> None:
    made = site.copy("s3+a+0123456789+0123456789abcdef")
    root = site.home / "other" if other else site.root
    site.job(root, "bcdfghjkm", f"{made}/data")
    site.queue(f"train-bcdfghjkm-a1 {root}/jobs/bcdfghjkm/script/batch")
    assert site.may_go() == []
    assert site.run("remove", str(made)) == f"used {made}\n"


def test_what_a_killed_job_left_half_made_goes_when_it_is_old(site: Site) -> None:
    part = site.copy(".s3+a+0123456789+0123456789abcdef.41.part", "")
    assert site.may_go() == [str(part)]
    assert site.run("remove", str(part)) == f"removed {part}\n"
    os.utime(site.copy(".s3+b+0123456789+0123456789abcdef.42.part", ""))
    assert site.may_go() == []
