"""Slurm's state words, 20.11 to 25.11."""

from __future__ import annotations

import pytest

from towline.models.job import JobState
from towline.slurm.states import STATES, job_state, state_word

RECORDED = {
    "COMPLETED": JobState.SUCCEEDED,
    "FAILED": JobState.FAILED,
    "CANCELLED by 2001": JobState.CANCELLED,
    "CANCELLED+": JobState.CANCELLED,
    "OUT_OF_ME+": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "TIMEOUT": JobState.FAILED,
    "NODE_FAIL": JobState.FAILED,
    "BOOT_FAIL": JobState.FAILED,
    "DEADLINE": JobState.FAILED,
    "PREEMPTED": JobState.CANCELLED,
    "REVOKED": JobState.CANCELLED,
    "COMPLETING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "CONFIGURING": JobState.PENDING,
    "REQUEUED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "SPECIAL_E+": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "EXPEDITING": JobState.PENDING,
    "SUSPENDED": JobState.SUSPENDED,
    "STOPPED": JobState.SUSPENDED,
    " running ": JobState.RUNNING,
    "CANCELLED,COMPLETING": JobState.RUNNING,
    "FAILED,COMPLETING": JobState.RUNNING,
    "RUNNING,CONFIGURING": JobState.PENDING,
    "NODE_FAIL,REQUEUED": JobState.PENDING,
    "PENDING,LAUNCH_FAILED": JobState.PENDING,
    "PENDING,REQUEUE_HOLD,LAUNCH_FAILED": JobState.PENDING,
    "COMPLETED,UPDATE_DB": JobState.SUCCEEDED,
    "RUNNING,POWER_UP_NODE": JobState.RUNNING,
}


@pytest.mark.parametrize("text", RECORDED)
def test_words(text: str) -> None:
    assert job_state(text) is RECORDED[text]


@pytest.mark.parametrize("text", ["", "FOO_BAR", "?", "+", "RE+", "S+", "1", "NEWSTATE,COMPLET"])
def test_what_is_not_known_is_unknown_and_never_an_end(text: str) -> None:
    assert job_state(text) is JobState.UNKNOWN
    assert not job_state(text).ended


def test_a_word_is_given_in_full() -> None:
    assert state_word("OUT_OF_ME+") == "OUT_OF_MEMORY"
    assert state_word("CANCELLED by 1000") == "CANCELLED"
    assert state_word("FOO_BAR") == "FOO_BAR"


def test_every_word_is_read_as_itself() -> None:
    for word, state in STATES.items():
        assert (state_word(word), job_state(word)) == (word, state)
