"""The entry point of the `towline` command. Help is printed before anything slow is imported."""

from __future__ import annotations

import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status; `argv` is without the program's name."""
    args = sys.argv[1:] if argv is None else argv
    if argv is None:
        _stand_in_for_closed_streams()
        _leave_at_early_interrupts()
    if (not args or args[0] in ("-h", "--help")) and "_TOWLINE_COMPLETE" not in os.environ:
        return _print_overview()
    import gc

    gc.set_threshold(100_000, 20, 20)  # what a start makes stays; looking it through takes a tenth of the time
    from towline.cli.app import execute

    status = execute(args)
    if argv is None:
        _leave_for_good(status)
    return status


def _leave_for_good(status: int) -> None:
    """End the process: everything is closed, and to have every module taken apart takes as long as a round trip."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # nobody takes it
    os._exit(status)


def _stand_in_for_closed_streams() -> None:
    """A stream that the caller has closed (`>&-`) is one that nobody reads, and no reason to fail."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


def _leave_at_early_interrupts() -> None:
    """Ctrl-C while modules are imported ends the program at once: nothing was begun, and an import cannot be undone."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> None:
    os.write(2, b"towline: interrupted\n")
    os._exit(130)


def _print_overview() -> int:
    from towline.cli.commands import overview

    try:
        print(overview(), end="", flush=True)
    except OSError as error:
        from towline.cli.guard import leave_lost_output

        return leave_lost_output(error)
    return 0
