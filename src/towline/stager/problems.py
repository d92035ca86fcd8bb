"""What can go wrong with data from elsewhere, each with a stable word."""

import errno


class Problem(Exception):
    """Why data could not be brought.

    Attributes:
        kind: `credentials`, `not-found`, `network`, `space`, `changed`, `damaged`, `names`, `tool`, `size` or `other`.
        text: one line for people, without values of secrets.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = " ".join(text.split())


_FULL = (errno.ENOSPC, errno.EDQUOT)


def of_system(error: OSError) -> Problem:
    """What an error of the operating system means here."""
    kind = "space" if error.errno in _FULL else "other"
    return Problem(kind, "{}: {}".format(error.filename or "writing", error.strerror or error))


def of_status(status: int, what: str, said: str = "") -> Problem:
    """What an HTTP status means here.

    Args:
        status: the status.
        what: what was asked for.
        said: the server's own words.
    """
    words = "{}: the server answers {}{}".format(what, status, " ({})".format(said) if said else "")
    if status in (401, 403):
        return Problem("credentials", words)
    if status in (404, 410):
        return Problem("not-found", words)
    if status == 412:
        return Problem("changed", "{} was changed while it was brought".format(what))
    return Problem("network" if status >= 500 or status in (408, 429) else "other", words)
