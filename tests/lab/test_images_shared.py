"""Images that the login host makes, and a cache that several users share."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice
from tests.lab.terminal import Terminal
from towline.config.profile import ClusterProfile
from towline.engine.images.preparing import place_of
from towline.lab import Lab
from towline.lab.layout import ALICE, BOB, User

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


@pytest.fixture
def both_have_accounts(shared: Shared, lab: Lab) -> Iterator[Shared]:
    """Bob may submit jobs as well, as members of one group may."""
    change = ["sacctmgr", "-i"]
    lab.run_on("ctl", [*change, "add", "user", BOB.name, f"Account={ALICE.account}", "Cluster=lab"], check=True)
    try:
        yield Shared(
            shared.alice, replace(shared.bob, environment=_without(shared.bob, "TOWLINE_IMPORT_ON")), shared.cache
        )
    finally:
        lab.run_on("login1", ["scancel", "--user", BOB.name], check=True)
        lab.run_on("ctl", [*change, "delete", "user", BOB.name], check=True)


def _place(cache: str, user: User) -> str:
    """Where a user's records of imports to that cache are."""
    root = f"/lustre/{user.name}/towline"
    return place_of(ClusterProfile(name="x", hosts=("h",), root=root, image_cache=cache, image_owners=("x",)))


def _without(terminal: Terminal, name: str) -> dict[str, str]:
    return {key: value for key, value in terminal.environment.items() if key != name}


def test_two_users_who_want_one_new_image_at_once_cause_one_import(both_have_accounts: Shared, lab: Lab) -> None:
    shared = both_have_accounts
    blocker = as_alice(lab, "sbatch --parsable -p cpu --exclusive -t 2 -o /dev/null --wrap 'sleep 300'")
    run = ("run", "--json", "--detach", "--image", IMAGE, *JOB, "--", "cat", "/etc/os-release")
    users = (shared.alice, shared.bob)
    clients = [user.start(*run) for user in users]
    told = [json.loads(client.communicate(timeout=120)[0])["job"]["id"] for client in clients]
    waiting = as_alice(lab, "squeue -h -p cpu -t PD -o '%u %j' | grep towline-import | cut -d ' ' -f 1 | sort")
    assert waiting.split() == [ALICE.name, BOB.name]  # neither can wait for a job that the other may cancel
    as_alice(lab, f"scancel {blocker}")
    for user, job in zip(users, told, strict=True):
        assert user("wait", job).code == 0, user("status", job)
        assert "ID=lab" in user("logs", job).out
    (image,) = shared.alice("images", "ls", "--json").json["images"]
    assert shared.alice("images", "verify").code == 0
    name = image["name"]
    # Enroot has spoken in one of their two jobs, and nothing half-made or locked is left.
    logs = [f"{_place(shared.cache, user)}/imports/{name}/attempts/1/log" for user in (ALICE, BOB)]
    spoken = lab.run_on("login1", ["sh", "-c", f"ls {' '.join(logs)} 2>/dev/null"]).stdout
    assert len(spoken.split()) == 1, spoken
    kept = [each for each in as_alice(lab, f"ls -A {shared.cache}").split() if not each.startswith(".use.")]
    assert sorted(kept) == [f"{name}.note", f"{name}.sqsh"]
    owners = {as_alice(lab, f"stat -c %U {shared.cache}/{name}.{kind}") for kind in ("sqsh", "note")}
    assert len(owners) == 1
    # Whoever did not make it has compared it with what the other recorded.
    other = {ALICE.name: shared.bob, BOB.name: shared.alice}[owners.pop()]
    again = other("run", "--image", IMAGE, *JOB, "--", "true")
    assert again.code == 0, again


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
