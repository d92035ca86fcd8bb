"""Images that the login host makes, and a cache that several users share."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice
from tests.lab.terminal import Terminal
from towline.lab import Lab
from towline.lab.layout import ALICE, BOB

IMAGE = "registry.lab:5000/demo:latest"
JOB = ("--gpus-per-node", "1", "--time", "2m")


@dataclass
class Shared:
    """A cache that both users can write to, and their terminals."""

    alice: Terminal
    bob: Terminal
    cache: str


@pytest.fixture
def shared(lab: Lab, tmp_path: Path) -> Iterator[Shared]:
    cache = f"/lustre/labtest-shared-{secrets.token_hex(4)}"
    lab.run_on("login1", ["mkdir", "-m", "1777", cache], check=True)
    both = {"TOWLINE_IMAGE_CACHE": cache, "TOWLINE_IMAGE_OWNERS": f"{ALICE.name},{BOB.name}"}
    as_bob = {
        "TOWLINE_USER": BOB.name,
        "TOWLINE_IDENTITY_FILE": str(lab.paths.key(BOB)),
        "TOWLINE_ROOT": "/lustre/bob/towline",
        "TOWLINE_IMPORT_ON": "login",  # he has no account for jobs
    }
    yield Shared(Terminal(tmp_path / "alice", both), Terminal(tmp_path / "bob", {**both, **as_bob}), cache)
    lab.run_on("login1", ["rm", "-rf", cache, "/lustre/bob/towline"], check=True)


def test_an_image_of_another_user_is_checked_before_use_and_stays_while_it_is_used(shared: Shared, lab: Lab) -> None:
    alice, bob = shared.alice, shared.bob
    pulled = bob("images", "pull", IMAGE)
    assert pulled.code == 0, pulled
    file = pulled.out.strip()
    name = file.rpartition("/")[2].removesuffix(".sqsh")
    job = alice("run", "--json", "--detach", "--image", IMAGE, "--sbatch", "hold", *JOB, "--", "true")
    assert job.code == 0, job
    assert f"{file}" in as_alice(lab, f"cat /lustre/alice/towline/jobs/{job.json['job']['id']}/script/step")
    (listed,) = bob("images", "ls", "--json").json["images"]
    assert (listed["image"], listed["jobs"]) == (IMAGE, [ALICE.name])
    assert bob("images", "rm", name).code == 71
    assert alice("images", "rm", name).out.startswith("failed it belongs to bob")
    assert alice("cancel", job.json["job"]["id"]).code == 0
    lab.run_on("login1", ["sh", "-c", f"printf x | dd of={file} bs=1 seek=200 conv=notrunc"], user=BOB.name, check=True)
    changed = alice("run", "--image", IMAGE, *JOB, "--", "true")
    assert changed.code == 73, changed
    assert f"{file} is not what bob has recorded of it" in changed.err
    removed = bob("images", "prune", "--unused", "0", "--json").json["removed"]
    assert [each["outcome"] for each in removed] == ["removed"]


def test_the_login_host_makes_an_image_before_the_job_is_submitted(lab: Lab, tmp_path: Path) -> None:
    cache = f"/lustre/alice/labtest-login-{secrets.token_hex(4)}"
    towline = Terminal(tmp_path / "state", {"TOWLINE_IMAGE_CACHE": cache, "TOWLINE_IMPORT_ON": "login"})
    before = as_alice(lab, "sacct -X -n -P -r cpu -S now-1hours --format=JobIDRaw | wc -l")
    try:
        ran = towline("run", "--image", IMAGE, *JOB, "--", "cat", "/etc/os-release")
        assert ran.code == 0, ran
        assert "ID=lab" in ran.out
        towline.environment["TOWLINE_IMAGE_TAGS"] = "reuse"
        failed = towline("run", "--image", "registry.lab:5000/demo:nosuch", *JOB, "--", "true")
        assert failed.code == 73
        assert "failed (on the login host)" in failed.err
        assert "Its tags are latest" in failed.err
        assert as_alice(lab, "sacct -X -n -P -r cpu -S now-1hours --format=JobIDRaw | wc -l") == before
    finally:
        as_alice(lab, f"rm -rf {cache}")
