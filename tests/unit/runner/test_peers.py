"""What several processes of one job agree on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from towline.runner.peers import Peers, agreed, peers_of, takes_away


@pytest.mark.parametrize(
    ("env", "peers"),
    [
        ({}, Peers()),
        ({"SLURM_NODEID": "1", "SLURM_STEP_NUM_NODES": "2", "TOWLINE_ATTEMPT": "3"}, Peers(1, 2, "3")),
        (
            {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NODEID": "1", "SLURM_JOB_ID": "7"},
            Peers(5, 8, "7"),
        ),
        ({"SLURM_NODEID": "1", "WORLD_SIZE": "4", "SLURM_RESTART_COUNT": "../x"}, Peers(1, 4, "..-x")),
    ],
)
def test_slurm_tells_who_they_are(env: dict[str, str], peers: Peers) -> None:
    assert peers_of(env) == peers


def test_the_first_text_counts_for_all(tmp_path: Path) -> None:
    texts = ["of 0", "of 1", "of 2"]
    got = [agreed(str(tmp_path), Peers(number, 3, "1"), "spec", texts[number]) for number in (1, 0, 2)]
    assert got == ["of 1"] * 3
    assert agreed(str(tmp_path), Peers(0, 3, "2"), "spec", "again") == "again", "another start decides anew"
    assert agreed(str(tmp_path), Peers(), "spec", "alone") == "alone"


def test_one_takes_away_what_all_share_after_the_last_has_ended(tmp_path: Path) -> None:
    said: list[bool] = []

    def end(number: int) -> None:
        said.append(takes_away(str(tmp_path), Peers(number, 8, "1"), failed=False))

    threads = [threading.Thread(target=end, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [False] * 7, "one still runs"
    end(7)
    assert said[7]


def test_the_first_that_failed_takes_away_and_nobody_after_it(tmp_path: Path) -> None:
    assert not takes_away(str(tmp_path), Peers(2, 3, "1"), failed=False)
    assert takes_away(str(tmp_path), Peers(0, 3, "1"), failed=True)
    assert not takes_away(str(tmp_path), Peers(1, 3, "1"), failed=True)
    assert takes_away(str(tmp_path), Peers(1, 3, "2"), failed=True), "another start takes away its own"
