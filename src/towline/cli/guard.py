"""How every command ends: an exit status, an error that a person and a program can read, and never a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import TextIO

import click

from towline.cli.output import BOLD, RED, paint
from towline.cli.terminal import clean_lines
from towline.engine.redaction import redacted
from towline.models.errors import INTERRUPTED, TowlineError, TransferFailed, UsageError

BROKEN_PIPE = 141
"""Exit status when the reader of the output went away: 128 + SIGPIPE, as shells have it."""


_CANNOT_WRITE = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO)


class Ended(Exception):
    """Leave the command with this exit status; everything is said already."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def guarded(action: Callable[[], object], *, json: Callable[[], bool]) -> int:
    """Run a command and turn any end of it into an exit status.

    Args:
        action: the command.
        json: whether errors are to be printed as a JSON object too, asked when there is one.
    """
    try:
        status = _ending(action, json)
        sys.stdout.flush()
    except OSError as error:
        return leave_lost_output(error)
    return status


def _ending(action: Callable[[], object], json: Callable[[], bool]) -> int:
    try:
        action()
    except (Ended, click.exceptions.Exit) as end:
        return end.status if isinstance(end, Ended) else end.exit_code
    except (KeyboardInterrupt, click.Abort):
        _say("towline: interrupted")
        if json():
            from towline.cli.documents import interrupted, print_document

            print_document(interrupted())
        return INTERRUPTED
    except click.ClickException as error:
        return report(_usage_error(error), json=json())
    except TowlineError as error:
        return report(error, json=json())
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            raise
        return report(_bug(error), json=json())
    return 0


def report(error: TowlineError, *, json: bool) -> int:
    """Print an error on stderr, and as a JSON object on stdout if asked; the result is its exit status."""
    print_error(error)
    if json:
        from towline.cli.documents import print_document, towline_exit

        print_document({"error": error.as_dict(), "exit": towline_exit(error.exit_status)})
    return error.exit_status


def print_error(error: TowlineError) -> None:
    """What failed, why, and what to do next."""
    first, *rest = clean_lines(redacted(error.what)) or ["failed"]
    lines = [f"{paint('towline: error:', RED, sys.stderr)} {first}", *(f"  {line}" for line in rest)]
    for label, text in (("why:", error.why), ("fix:", error.fix)):
        lines += _labelled(label, clean_lines(redacted(text)))
    _say("\n".join(lines))


def _say(text: str) -> None:
    """Print on stderr; when that cannot be written there is nobody left to tell."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Send what is left in a stream nowhere: the interpreter would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _labelled(label: str, lines: list[str]) -> list[str]:
    marks = [paint(label, BOLD, sys.stderr), *["    "] * len(lines)]
    return [f"  {mark} {line}" for mark, line in zip(marks, lines, strict=False)]


def leave_lost_output(error: OSError) -> int:
    """The exit status when stdout cannot be written; a reader that went away needs no words."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _silence(stream)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    return report(TransferFailed("the output could not be written", why=error.strerror or str(error)), json=False)


def _usage_error(error: click.ClickException) -> UsageError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "towline"
    if context and isinstance(error, click.exceptions.NoArgsIsHelpError) and isinstance(context.command, click.Group):
        choice = ", ".join(context.command.list_commands(context))
        return UsageError(
            f"{command} needs to be told what", fix=f"Write one of these behind it: {choice}. See {command} --help."
        )
    return UsageError(error.format_message(), fix=f"See {command} --help.")


def _bug(error: Exception) -> TowlineError:
    from towline.engine.crashes import write_crash_report

    summary = f"{type(error).__name__}: {error}".partition("\n")[0]
    path = write_crash_report(error)
    fix = f"Please report it with {path}." if path else "Please report it with what you did."
    return TowlineError("this is a bug in Towline", why=summary, fix=fix)
