"""From what the transport brought back to an answer or an error in the user's words."""

from __future__ import annotations

from collections.abc import Mapping

from towline.models.errors import OutcomeUnknown, RemoteFault, TowlineError, Unreachable, WaitTimedOut
from towline.remote.base import Ending, Outcome

_AGAIN = "Run the command again; it picks up what is there."


def expect_done(outcome: Outcome, doing: str, errors: Mapping[int, TowlineError] | None = None) -> bytes:
    """The script's stdout, when it ran to its end with exit code 0.

    Args:
        outcome: what came back.
        doing: what was being done, to follow "while": for example `reading the log`.
        errors: the errors that the script's own exit codes stand for.

    Raises:
        Unreachable: nothing ran.
        WaitTimedOut: the script was stopped after its time.
        OutcomeUnknown: the connection broke while it ran.
        RemoteFault: it failed with a code that is not in `errors`; else the error found there.
    """
    check_ending(outcome, doing)
    if outcome.exit_code:
        raise (errors or {}).get(outcome.exit_code) or _fault(outcome, doing)
    return outcome.stdout


def check_ending(outcome: Outcome, doing: str, *, when_lost: str = _AGAIN) -> None:
    """Return when the script ran to its end, whatever its exit code.

    Args:
        outcome: what came back.
        doing: what was being done, to follow "while".
        when_lost: what to do when the connection broke meanwhile.

    Raises:
        Unreachable, WaitTimedOut, OutcomeUnknown: as `expect_done` does.
    """
    if outcome.ending is Ending.NOT_STARTED:
        raise unreachable(outcome)
    if outcome.ending is Ending.TIMED_OUT:
        raise WaitTimedOut(
            f"{outcome.host or 'the login host'} did not answer in time while {doing}",
            why=outcome.detail,
            fix="The login host or its file system may be slow; try again in a while.",
        )
    if outcome.ending is Ending.UNKNOWN:
        raise OutcomeUnknown(
            f"the connection to {outcome.host or 'the login host'} broke while {doing}",
            why=outcome.detail,
            fix=when_lost,
        )


def unreachable(outcome: Outcome) -> Unreachable:
    """The error for a call that never started."""
    return Unreachable(
        "no login host could be reached",
        why=outcome.detail,
        fix="See that the network and VPN are up and that `ssh` to the host works without questions.",
    )


def last_words(stderr: bytes, most: int = 2000) -> str:
    """What a script said on stderr, shortened from the front."""
    text = stderr.decode("utf-8", "replace").strip()
    return text if len(text) <= most else "…" + text[-most:]


def _fault(outcome: Outcome, doing: str) -> RemoteFault:
    return RemoteFault(
        f"{outcome.host or 'the login host'} failed with exit code {outcome.exit_code} while {doing}",
        why=last_words(outcome.stderr) or "It said nothing.",
        fix="Log in there and try the same by hand; the message above is the cluster's own.",
    )
