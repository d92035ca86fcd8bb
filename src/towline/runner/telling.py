"""What people read of the runner: lines on stderr, beside what the command itself writes."""

import sys


def say(text: str) -> None:
    """Tell something in one line."""
    print("towline: {}".format(" ".join(text.split())), file=sys.stderr, flush=True)
