"""What a job says of its container reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice
from tests.lab.terminal import Terminal
from towline.lab import Lab

IMAGE = ("--image", "/lustre/images/busybox.sqsh", "--time", "2m")


@pytest.fixture
def towline(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def test_a_container_is_writable_or_not_and_its_user_root_or_not(towline: Terminal) -> None:
    show = "id -u; touch /made 2>&1 && echo written"
    root = towline("run", *IMAGE, "--writable", "yes", "--remap-root", "yes", "--shell", show)
    assert (root.code, root.out) == (0, "0\nwritten\n"), root
    plain = towline("run", *IMAGE, "--writable", "no", "--remap-root", "no", "--shell", show)
    user, refused = plain.out.splitlines()
    assert user != "0"
    assert refused.endswith("Read-only file system")


@pytest.fixture
def named(towline: Terminal, lab: Lab) -> Iterator[str]:
    """Slurm's id of a job whose container has the name `work`, and which ends when /done is made there."""
    wait = "touch /made; echo made; until [ -e /done ]; do sleep 0.1; done"
    job = towline.submit(*IMAGE, "--writable", "yes", "--container-name", "work", "--shell", wait)
    known = towline.job(job)
    as_alice(lab, f"until grep -q made {known['directory']}/attempts/1/main.out; do sleep 0.2; done")
    yield known["attempts"][-1]["slurm_id"]
    towline("cancel", job)


def test_another_step_of_the_job_finds_its_named_container(named: str, towline: Terminal, lab: Lab) -> None:
    step = f"srun --overlap --jobid={named} --container-name=work-{named}"
    assert as_alice(lab, f"{step} sh -c '[ -e /made ] && touch /done && echo shared'") == "shared"
    assert towline("wait", named).code == 0


def test_without_a_runtime_the_command_runs_on_the_node(towline: Terminal) -> None:
    towline.environment["TOWLINE_RUNTIME"] = "none"
    bare = towline("run", "--time", "2m", "--shell", "cat /etc/os-release; [ ! -e /.towline ]")
    assert bare.code == 0, bare
    assert "ID=lab" not in bare.out
    refused = towline("run", *IMAGE, "--", "true")
    assert refused.code == 65
    assert "there is no container runtime" in refused.err
