"""The Python that brings data: the one that the profile names, and nothing in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Slurm
from towline.config.profile import ClusterProfile
from towline.engine.data.preparing import asking_python
from towline.engine.data.program import program
from towline.slurm.preparation import parse_preparations, state_call
from towline.slurm.scripts import script
from towline.storage.remote import Access, data_file, failure_of, find_call, parse_found

URI = "https://nowhere.invalid/file"


def ask(home: Path, python: str) -> str:
    """The kind of what keeps a source from being asked."""
    ran = Slurm(home).run(find_call(str(home / "staged"), [URI], program(), python, Access({})), home / "call")
    problem = parse_found(ran.out, [URI])[0].problem
    assert problem
    assert problem.kind != "staging-python" or python in problem.why
    return problem.kind


def test_the_login_host_asks_with_the_python_that_is_named_or_says_that_it_is_not_there(tmp_path: Path) -> None:
    old = tmp_path / "python 2"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for number, (python, kind) in enumerate(
        [("", "network"), (sys.executable, "network"), ("/no/such", "staging-python"), (str(old), "staging-python")]
    ):
        home = tmp_path / str(number)
        home.mkdir()
        assert ask(home, python) == kind, python


@pytest.mark.parametrize(
    ("settings", "asking"),
    [
        ({}, "/env/bin/python"),
        ({"staging_image": "/lustre/py.sqsh"}, ""),  # it is a path in there
        ({"unseen": ("/env",)}, ""),
        ({"unseen": ("/other",)}, "/env/bin/python"),
    ],
)
def test_login_hosts_are_asked_with_what_they_see(settings: dict[str, object], asking: str) -> None:
    words = {"name": "x", "hosts": ("h",), "root": "/lustre/me", "staging_python": "/env/bin/python", **settings}
    assert asking_python(ClusterProfile.model_validate(words)) == asking


@pytest.mark.parametrize(
    ("python", "container", "kind", "why"),
    [
        ("/no/such", (), "staging-python", "`staging_python` names /no/such"),
        ("/no/such", ("env",), "staging-python", "is not there on `staging_image`"),
        ("", ("sh", "-c", "echo no such image; exit 1"), "other", "no such image"),
    ],
)
def test_a_staging_job_takes_no_other_python(
    tmp_path: Path, python: str, container: tuple[str, ...], kind: str, why: str
) -> None:
    slurm, own = Slurm(tmp_path), tmp_path / "staged" / "imports" / "copy"
    (own / "attempts" / "1").mkdir(parents=True)
    (own / "attempts" / "1" / "submit").write_text("77\n")
    (own / "script").mkdir()
    (own / "script" / "data").write_bytes(data_file(URI, "copy", "", (), python, container))
    (own / "script" / "variables").write_bytes(b"")
    (own / "script" / "stager").write_bytes(program())
    env = {"PATH": f"{slurm.bin}:{os.environ['PATH']}", "TOWLINE_JOB_DIR": str(own), "TOWLINE_ATTEMPT": "1"}
    job = ["/bin/sh", "-c", script("data-job")]
    subprocess.run(job, env={**env, "SLURM_JOB_ID": "77"}, check=False, capture_output=True)
    looked = slurm.run(state_call(str(tmp_path / "staged"), ["copy"]), tmp_path / "call")
    problem = failure_of(parse_preparations(looked.out)["copy"])
    assert problem
    assert problem.kind == kind, problem
    assert why in problem.why
