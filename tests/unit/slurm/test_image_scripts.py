"""How an import is doing, told while its job ends: nobody may take one that has ended well for one that failed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.container.housekeeping import images_call, parse_images
from towline.engine.watching.verdict import waits_for
from towline.slurm.calls import PollTarget, Submission, poll_call, preparation_call
from towline.slurm.poll import Awaited, parse_poll
from towline.slurm.preparation import parse_preparations, state_call

SQUASHFS = b"hsqs" + bytes(36) + (96).to_bytes(8, "little") + bytes(48)
NAME = "registry.lab+demo+x86_64+1"


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    return Slurm(tmp_path)


def cache_with_import(home: Path) -> Path:
    """A cache in which Slurm job 41 makes an image."""
    attempt = home / "cache" / "imports" / NAME / "attempts" / "1"
    attempt.mkdir(parents=True)
    (attempt / "submit").write_text("41\n")
    return home / "cache"


def test_a_job_that_ends_while_it_is_looked_at_has_made_its_image(slurm: Slurm, tmp_path: Path) -> None:
    """It leaves the queue in the moment in which that is asked."""
    cache = cache_with_import(tmp_path)
    (tmp_path / "image").write_bytes(SQUASHFS)
    (slurm.bin / "squeue").write_text(
        f"#!/bin/sh\ncp '{tmp_path}/image' '{cache}/{NAME}.sqsh'\n"
        f"echo code=0 >'{cache}/imports/{NAME}/attempts/1/end'\n"
        "echo 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1\n"
    )
    found = parse_preparations(slurm.run(state_call(str(cache), [NAME]), tmp_path / "call").out)[NAME]
    assert (found.state, found.ready) == ("ended", True)


def test_what_was_made_since_the_caller_looked_is_not_made_again(slurm: Slurm, tmp_path: Path) -> None:
    cache = cache_with_import(tmp_path)
    (cache / f"{NAME}.sqsh").write_bytes(SQUASHFS)
    submission = Submission(str(cache), NAME, 2, "towline-import-1-a2", ("sbatch", "--parsable", "x"), 0.0)
    ran = slurm.run(preparation_call(str(cache), NAME, submission, {}), tmp_path / "call")
    assert (ran.code, ran.out) == (0, "there\n")
    assert slurm.jobs == []


def test_a_poll_tells_how_far_an_import_is_that_a_job_waits_for(slurm: Slurm, tmp_path: Path) -> None:
    attempt = cache_with_import(tmp_path) / "imports" / NAME / "attempts" / "1"
    script = tmp_path / "root" / "jobs" / "j1" / "script"
    script.mkdir(parents=True)
    (script / "images").write_text(f"r/demo:1 {tmp_path}/cache/{NAME}.sqsh\nr/there:1 {tmp_path}/cache/other.sqsh\n")

    def awaited(number: int) -> tuple[Awaited, ...]:
        call = poll_call(str(tmp_path / "root"), [PollTarget("j1", 1)])
        return parse_poll(slurm.run(call, tmp_path / f"call{number}").out).attempts["j1", 1, None].awaits

    assert awaited(1) == (Awaited("r/demo:1", "41"),)
    (attempt / "stage").write_text("import\n")
    (attempt / "progress").write_text("5368709120 130 41943040\n")
    (attempt / "log").write_text("[INFO] Downloading 5 missing layers...\n\n  10%\r 20%\n")
    (found,) = awaited(2)
    assert waits_for(found) == (
        "r/demo:1 is being imported: Downloading 5 missing layers..., 5.0 GiB, 40.0 MiB/s, 2m10s"
    )
    (attempt / "end").write_text("code=0\n")
    assert awaited(3) == ()


def test_a_login_host_that_has_gone_silent_makes_nothing_any_more(slurm: Slurm, tmp_path: Path) -> None:
    attempt = cache_with_import(tmp_path) / "imports" / NAME / "attempts" / "1"
    (attempt / "submit").unlink()

    def state(number: int) -> str:
        ran = slurm.run(state_call(str(tmp_path / "cache"), [NAME]), tmp_path / f"call{number}")
        return parse_preparations(ran.out)[NAME].state

    assert state(1) == "open"
    (attempt / "here").write_text("login1 4711\n")
    os.utime(attempt / "here", (1, 1))
    assert state(2) == "gone"
    (attempt / "progress").write_text("2048 4 512\n")
    assert state(3) == "alive"
    assert slurm.calls("squeue") == []


def test_a_use_by_another_user_is_told_until_its_job_is_gone(slurm: Slurm, tmp_path: Path) -> None:
    """The other's mark is this user's here: only the uid in squeue's answer says whose job it is."""
    cache = cache_with_import(tmp_path)
    (cache / f"{NAME}.sqsh").write_bytes(SQUASHFS)
    (slurm.bin / "id").write_text("#!/bin/sh\necho 4711\n")
    (slurm.bin / "id").chmod(0o755)
    mark = cache / f".use.{NAME}.{os.getuid()}"
    mark.write_text("train-abc\nold-job\n")

    def used(number: int, queue: str) -> tuple[str, ...]:
        (slurm.bin / "squeue").write_text(f"#!/bin/sh\nprintf '{queue}'\n")
        ran = slurm.run(images_call(str(tmp_path / "root"), str(cache)), tmp_path / f"call{number}")
        (found,) = parse_images(ran.out)
        return found.jobs

    assert len(used(1, f"{os.getuid()} train-abc-a2\\n")) == 1
    assert used(2, "4711 train-abc-a2\\n") == ()
    assert used(3, f"{os.getuid()} train-abcd-a1\\n") == ()


@pytest.mark.parametrize(
    ("signs", "queued", "days", "users"),
    [
        ((), False, 0, ("j1",)),  # on its way to Slurm
        ((), False, 2, ()),  # its client never came that far
        (("submit",), True, 0, ("j1",)),
        (("submit", "claim", "end"), False, 0, ()),
        (("claim",), False, 0, ()),  # the answer to its submission was lost
        (("../../cancelled",), False, 0, ()),
    ],
)
def test_an_image_is_in_use_until_its_jobs_are_over(
    slurm: Slurm, tmp_path: Path, signs: tuple[str, ...], queued: bool, days: int, users: tuple[str, ...]
) -> None:
    cache, job = tmp_path / "cache", tmp_path / "root" / "jobs" / "j1"
    cache.mkdir()
    (cache / f"{NAME}.sqsh").write_bytes(SQUASHFS)
    (job / "script").mkdir(parents=True)
    (job / "attempts" / "1").mkdir(parents=True)
    (job / "script" / "images").write_text(f"r/demo:1 {cache}/{NAME}.sqsh\n")
    (job / "job.json").write_text("{}")
    then = time.time() - days * 86400
    os.utime(job / "job.json", (then, then))
    for sign in signs:
        (job / "attempts" / "1" / sign).write_text("41\n")
    if queued:
        (slurm.bin / "squeue").write_text("#!/bin/sh\necho train-j1-a1\n")
    ran = slurm.run(images_call(str(tmp_path / "root"), str(cache)), tmp_path / "call")
    assert [image.jobs for image in parse_images(ran.out)] == [users]


def test_what_others_have_put_into_the_cache_hides_no_image(slurm: Slurm, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "dir.sqsh").mkdir(parents=True)
    for name in (NAME, "a b", "new\nline", "q'uote", "-rf", ".hidden"):
        (cache / f"{name}.sqsh").write_bytes(SQUASHFS)
    (cache / "empty.sqsh").touch()
    (cache / f"{NAME}.note").write_bytes(b"garbage\xff\n===\nsize=zz\n")
    (cache / "link.sqsh").symlink_to(cache / f"{NAME}.sqsh")
    os.mkfifo(cache / "pipe.sqsh")
    calls = [images_call(str(tmp_path / "root"), str(cache), read=read) for read in ("list", "sum")]
    for number, call in enumerate(calls):
        ran = slurm.run(call, tmp_path / f"call{number}")
        found = {each.image.name: each.whole for each in parse_images(ran.out)}
        assert set(found) == {NAME, "-rf", "empty"}
        assert not found["empty"]
