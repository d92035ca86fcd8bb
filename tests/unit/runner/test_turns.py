"""One process makes a thing, the others wait; none waits for the dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from towline.runner import turns
from towline.runner.turns import Queue, Who
from towline.stager.problems import Problem

ME = Who.me({})
RUN = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "TAO_JOB_ID": "job"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "BEAT", 0.02)
    monkeypatch.setattr(turns, "_LONG", 0.05)


def elsewhere(number: int, **facts: object) -> Who:
    """Somebody on another node."""
    return Who(f"node{number}", "", 1, "", str(facts.get("job", "")), str(facts.get("run", "")), "0")


def have(folder: Path, make: Callable[[str], None], who: Who = ME) -> list[str]:
    """What was said while the thing at `folder/thing` was made or waited for."""
    said: list[str] = []
    Queue(str(folder / "control"), who, said.append).make_once("x", (folder / "thing").exists, make)
    return said


def making(folder: Path, made: list[str]) -> Callable[[str], None]:
    def make(work: str) -> None:
        made.append(work)
        (folder / "thing").write_text("made")

    return make


def turn(folder: Path, number: int, text: str) -> Path:
    (folder / "control").mkdir(exist_ok=True)
    path = folder / "control" / f"turn-{number}"
    path.write_text(text)
    return path


def test_of_many_that_ask_at_once_one_makes_it(tmp_path: Path) -> None:
    made: list[str] = []
    begin = threading.Barrier(12)

    def one(number: int) -> None:
        begin.wait()
        have(tmp_path, making(tmp_path, made), elsewhere(number))

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(one, range(12)))
    assert len(made) == 1
    assert list((tmp_path / "control").iterdir()) == []


def test_one_that_dies_is_followed_by_another_on_its_node_at_once(tmp_path: Path) -> None:
    """It is killed in the middle, with work half-done, which the next goes on with."""
    script = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(turns.__file__).parents[2])!r})
        from towline.runner.turns import Queue, Who
        def make(work):
            open(os.path.join(work, "half"), "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        Queue({str(tmp_path / "control")!r}, Who.me({{}}), print).make_once("x", lambda: False, make)
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False).returncode == -9
    found: list[list[str]] = []

    def make(work: str) -> None:
        found.append(os.listdir(work))
        (tmp_path / "thing").touch()

    have(tmp_path, make)
    assert found == [["half"]]


def test_one_that_shows_no_life_is_followed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "STALE", 0.3)
    turn(tmp_path, 3, json.dumps({"who": elsewhere(1), "beat": 5}))
    made: list[str] = []
    said = have(tmp_path, making(tmp_path, made))
    assert made == [str(tmp_path / "control" / "work-4")]
    assert said == ["waiting for node1, where x is brought"]


def test_one_that_shows_life_is_waited_for_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "STALE", 0.2)
    path = turn(tmp_path, 1, json.dumps({"who": elsewhere(1), "beat": 0}))

    def live() -> None:
        for beat in range(40):
            path.write_text(json.dumps({"who": elsewhere(1), "beat": beat}))
            threading.Event().wait(0.02)
        (tmp_path / "thing").touch()

    other = threading.Thread(target=live)
    other.start()
    made: list[str] = []
    have(tmp_path, making(tmp_path, made))
    other.join()
    assert made == []


def test_a_living_process_of_this_node_is_not_taken_for_dead() -> None:
    assert not ME.is_seen_dead_by(ME)
    assert ME._replace(born="1").is_seen_dead_by(ME)
    assert not ME._replace(host="other", born="1").is_seen_dead_by(ME)
    assert not ME._replace(space="another container", born="1").is_seen_dead_by(ME)


def test_processes_of_others_are_not_taken_for_dead_because_they_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ME._replace(pid=1, born="1")

    def hidden(pid: int) -> str:
        assert pid
        return ""

    monkeypatch.setattr(turns, "_born", hidden)
    assert not first.is_seen_dead_by(ME)
    assert ME._replace(pid=2**22 + 1).is_seen_dead_by(ME)


def test_another_step_of_the_same_attempt_is_waited_for() -> None:
    """Roles are steps that run at once."""
    mine = Who.me(RUN)
    assert not mine._replace(step="1").is_earlier_start_of(mine)
    assert mine._replace(run="7.1").is_earlier_start_of(mine)
    assert not mine._replace(job="other", run="7.1").is_earlier_start_of(mine)
    assert not mine._replace(step="1").is_in_step_of(mine)


def test_an_earlier_start_of_the_same_job_is_followed_at_once(tmp_path: Path) -> None:
    turn(tmp_path, 1, json.dumps({"who": elsewhere(1, job="job", run="6.0"), "beat": 1}))
    made: list[str] = []
    have(tmp_path, making(tmp_path, made), Who.me(RUN))
    assert made == [str(tmp_path / "control" / "work-2")]


def test_a_later_start_is_not_followed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that was cut off comes back: its process has lost, and waits for its successor."""
    monkeypatch.setattr(turns, "STALE", 0.3)
    made: list[str] = []

    def cut_off(work: str) -> None:
        os.rename(work, tmp_path / "control" / "work-2")
        turn(tmp_path, 2, json.dumps({"who": elsewhere(1, job="job", run="8.0"), "beat": 1}))
        made.append(work)
        if len(made) == 1:
            (Path(work) / "file").touch()
        (tmp_path / "thing").touch()

    have(tmp_path, cut_off, Who.me(RUN))
    assert [Path(each).name for each in made] == ["work-1", "work-3"]


def test_what_failed_is_told_to_those_of_the_same_start_and_tried_again_by_others(tmp_path: Path) -> None:
    def fail(work: str) -> None:
        del work
        raise Problem("credentials", "the store refuses")

    with pytest.raises(Problem, match="the store refuses"):
        have(tmp_path, fail, Who.me(RUN))
    made: list[str] = []
    with pytest.raises(Problem, match="the store refuses") as told:
        have(tmp_path, making(tmp_path, made), elsewhere(2, job="job", run="7.0"))
    assert told.value.kind == "credentials"
    assert made == []
    have(tmp_path, making(tmp_path, made), elsewhere(2, job="job", run="7.1"))
    assert len(made) == 1


def test_a_turn_that_is_only_half_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "STALE", 0.1)
    turn(tmp_path, 1, '{"who": ["node1"')
    made: list[str] = []
    have(tmp_path, making(tmp_path, made))
    assert len(made) == 1
