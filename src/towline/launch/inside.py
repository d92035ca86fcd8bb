"""The files with which a command runs inside a job that runs already, and the command that keeps an allocation."""

from __future__ import annotations

from collections.abc import Sequence

from towline.launch.files import packaged
from towline.launch.quoting import quote_words

_SHELL = """\
if command -v bash >/dev/null; then exec bash -i; fi
exec sh -i
"""


_SECRETS = '[ ! -r "$TOWLINE_JOB_DIR/secrets" ] || . "$TOWLINE_JOB_DIR/secrets"\n'


def files_inside(command: Sequence[str], *, secrets: bool = False) -> dict[str, bytes]:
    """What `slurm/scripts/inside.sh` needs beside it.

    Args:
        command: words; none for an interactive shell.
        secrets: whether it gets the job's secrets.
    """
    body = f'set -- {quote_words(command)}\nexec "$@"\n' if command else _SHELL
    own = f"{_SECRETS if secrets else ''}{body}"
    return {"enter": packaged("enter.sh"), "inner": packaged("inner.sh"), "command": own.encode()}


def keeper() -> str:
    """Shell text that keeps an allocation for as long as somebody renews the lease on it, see `scripts/keep.sh`."""
    return packaged("keep.sh").decode()
