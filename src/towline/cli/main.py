"""The entry point of the `towline` command. Help is printed before anything slow is imported."""

from __future__ import annotations

import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status; `argv` is without the program's name."""
    args = sys.argv[1:] if argv is None else argv
    if (not args or args[0] in ("-h", "--help")) and "_TOWLINE_COMPLETE" not in os.environ:
        return _print_overview()
    from towline.cli.app import execute

    return execute(args)


def _print_overview() -> int:
    from towline.cli.commands import overview

    try:
        print(overview(), end="", flush=True)
    except OSError as error:
        from towline.cli.guard import leave_lost_output

        return leave_lost_output(error)
    return 0
