"""Reviewing a job and confirming it: exactly what was shown, once, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline.lab import Lab

JOB = ("--image", "/lustre/images/busybox.sqsh", "--time", "2m")


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state", {"TOKEN": "sesame-open-up"})


def test_two_confirmations_at_once_give_one_job(towline: Terminal) -> None:
    shown = towline("review", "--json", *JOB, "--secret", "TOKEN", "--", "sh", "-c", 'test "$TOKEN" && echo done')
    assert shown.code == 0
    assert "sesame" not in shown.out + shown.err
    review = shown.json["review"]
    assert review["secrets"] == [{"name": "TOKEN", "source": "", "present": True}]
    assert towline("ps", "--json").json == {"jobs": []}, "a review sends nothing"
    both = [towline.start("confirm", review["hash"], "--detach") for _ in range(2)]
    ended = [(*process.communicate(timeout=120), process.returncode) for process in both]
    assert {code for _, _, code in ended} <= {0, 75}, ended
    job = review["plan"]["job_id"]
    assert "files" not in review["plan"]
    assert {out.strip() for out, _, code in ended if code == 0} == {job}
    again = towline("confirm", review["hash"])
    assert (again.code, again.out) == (0, "done\n")
    listed = towline("ps", "--all", "--json").json["jobs"]
    assert [each["id"] for each in listed] == [job]
    assert len(listed[0]["slurm_ids"]) == 1


def test_what_is_not_as_it_was_is_not_sent(towline: Terminal, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.sh").write_text("echo one\n")
    review = towline("review", "--json", *JOB, "--code", str(code), "--", "sh", "train.sh").json["review"]
    (code / "train.sh").write_text("echo two, and more\n")
    refused = towline("confirm", review["hash"])
    assert refused.code == 65
    assert "the code" in refused.err
    assert towline("ps", "--all", "--json").json == {"jobs": []}


def test_what_is_missing_is_listed_and_cannot_be_confirmed(towline: Terminal) -> None:
    shown = towline("review", "--json", *JOB, "--secret", "NOT_SET", "--partition", "nosuch", "--", "true")
    assert shown.code == 65
    review = shown.json["review"]
    assert review["hash"] is None
    said = " ".join(each["what"] for each in review["missing"])
    assert "no partition nosuch" in said
    assert "NOT_SET has no value" in said
