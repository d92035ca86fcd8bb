"""What sbatch's errors mean; the texts are what Slurm prints."""

from __future__ import annotations

import pytest

from towline.models.errors import OutcomeUnknown, SlurmRefused, SlurmUnavailable
from towline.slurm.refusals import RefusalKind, classify_refusal
from towline.slurm.submission import Came, ScriptExit, parse_submission, submission_error

PERMANENT, TEMPORARY, AMBIGUOUS = RefusalKind.PERMANENT, RefusalKind.TEMPORARY, RefusalKind.AMBIGUOUS
FAILED = "sbatch: error: Batch job submission failed: "
POLICY = f"{FAILED}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n"

SAID = {
    f"sbatch: error: invalid partition specified: nosuch\n{FAILED}Invalid partition name specified\n": (
        PERMANENT,
        "partition",
    ),
    f"{FAILED}Invalid account or account/partition combination specified\n": (PERMANENT, "account"),
    f"{FAILED}Invalid qos specification\n": (PERMANENT, "qos"),
    f"{FAILED}Requested node configuration is not available\n": (PERMANENT, "resources"),
    "sbatch: error: Invalid generic resource (gres) specification\n": (PERMANENT, "gpu-request"),
    f"{FAILED}Memory required by task is not available\n": (PERMANENT, "memory"),
    (
        "sbatch: error: Memory specification can not be satisfied\n"
        f"{FAILED}Requested node configuration is not available\n"
    ): (PERMANENT, "memory"),
    f"sbatch: error: QOSMaxWallDurationPerJobLimit\n{POLICY}": (PERMANENT, "time-limit"),
    f"sbatch: error: QOSMaxGRESPerJob\n{POLICY}": (PERMANENT, "limit"),
    f"sbatch: error: AssocMaxCpuPerJobLimit\n{POLICY}": (PERMANENT, "limit"),
    POLICY: (PERMANENT, "limit"),
    f"{FAILED}Requested time limit is invalid (missing or exceeds some limit)\n": (PERMANENT, "time-limit"),
    "sbatch: unrecognized option '--nosuch'\nTry \"sbatch --help\" for more information\n": (PERMANENT, "option"),
    "sbatch: error: Invalid --time specification\n": (PERMANENT, "time"),
    "sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #!\n": (
        PERMANENT,
        "script",
    ),
    "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n": (PERMANENT, "script"),
    f"{FAILED}Access denied to requested reservation\n": (PERMANENT, "reservation"),
    f"{FAILED}Job dependency problem\n": (PERMANENT, "dependency"),
    f"sbatch: error: You must always specify a type\n{FAILED}Unspecified error\n": (PERMANENT, "gpu-request"),
    f"sbatch: error: Please tell your favourite colour\n{FAILED}Unspecified error\n": (PERMANENT, "refused"),
    f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}": (TEMPORARY, "queue-full"),
    f"sbatch: error: AssocMaxSubmitJobLimit\n{POLICY}": (TEMPORARY, "queue-full"),
    f"sbatch: error: AssocGrpSubmitJobsLimit\n{POLICY}": (TEMPORARY, "queue-full"),
    f"sbatch: error: MaxSubmitJobsPerAccount\n{POLICY}": (TEMPORARY, "queue-full"),
    f"{FAILED}Unable to contact slurm controller (connect failure)\n": (TEMPORARY, "controller-away"),
    f"{FAILED}Connection refused\n": (TEMPORARY, "controller-away"),
    (
        "sbatch: error: If munged is up, restart with --num-threads=10\n"
        'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file or directory\n'
        f"{FAILED}Protocol authentication error\n"
    ): (TEMPORARY, "authentication"),
    f"{FAILED}System submissions disabled\n": (TEMPORARY, "submissions-paused"),
    f"{FAILED}Required partition not available (inactive or drain)\n": (TEMPORARY, "partition-down"),
    f"{FAILED}Socket timed out on send/recv operation\n": (AMBIGUOUS, "answer-lost"),
    f"{FAILED}Unable to contact slurm controller (receive failure)\n": (AMBIGUOUS, "answer-lost"),
    f"{FAILED}Zero Bytes were transmitted or received\n": (AMBIGUOUS, "answer-lost"),
}


@pytest.mark.parametrize("stderr", SAID)
def test_errors_of_sbatch(stderr: str) -> None:
    refusal = classify_refusal(stderr)
    assert (refusal.kind, refusal.code) == SAID[stderr]
    assert refusal.remedy.endswith(".")
    assert refusal.said
    assert "sbatch: error" not in refusal.said


def test_chatter_does_not_hide_the_error() -> None:
    refusal = classify_refusal(
        f"sbatch: info: welcome\nsbatch: Warning: can't run 1 processes\n{FAILED}Invalid qos specification\n"
    )
    assert refusal.said == "Batch job submission failed: Invalid qos specification"


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        (f"{FAILED}Invalid qos specification\n", SlurmRefused),
        (f"sbatch: error: QOSMaxSubmitJobPerUserLimit\n{POLICY}", SlurmUnavailable),
        (f"{FAILED}Unable to contact slurm controller (connect failure)\n", SlurmUnavailable),
    ],
)
def test_a_refusal_becomes_the_users_error(stderr: str, kind: type[SlurmRefused]) -> None:
    error = submission_error(parse_submission(48, "", stderr))
    assert type(error) is kind
    assert error is not None
    assert error.why
    assert error.fix


@pytest.mark.parametrize("code", [1, 2, 127, 137, 255])
def test_an_exit_code_that_is_not_the_scripts_leaves_the_outcome_open(code: int) -> None:
    answer = parse_submission(code, "", "killed")
    assert answer.exit is None
    assert isinstance(submission_error(answer), OutcomeUnknown)


def test_success_without_an_id_is_not_believed() -> None:
    answer = parse_submission(0, "hello\n", "")
    assert answer.exit is ScriptExit.UNCLEAR
    assert isinstance(submission_error(answer), OutcomeUnknown)


@pytest.mark.parametrize("ending", [item for item in ScriptExit if item is not ScriptExit.OK])
def test_every_ending_has_an_error(ending: ScriptExit) -> None:
    error = submission_error(parse_submission(ending, "", "why"))
    assert error is not None
    assert 64 <= error.exit_status <= 78


def test_the_words_of_the_script() -> None:
    for word in Came:
        assert parse_submission(0, f"came={word.value}\nslurm=41;gpu\n", "").came is word
