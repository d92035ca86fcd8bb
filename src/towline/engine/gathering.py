"""What the tasks of an array have made, gathered in the order of their numbers."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterable

from towline.models.values import Json

_NAME = re.compile(
    r"results/([0-9]+)/return\.json|attempts/[0-9]+/(?:main-|task-)([0-9]+)(?:/(?:ranks|nodes)/0-[\w.-]+)?\.out",
    re.ASCII,
)


def tasks_file(tasks: Iterable[int]) -> bytes:
    """The file `tasks` of the script `gather`."""
    return "".join(f"{task}\n" for task in tasks).encode()


def parse_gathered(stream: bytes) -> dict[int, Json]:
    """Read the answer of the script `gather`: task → what it returned, or the text that it wrote to stdout.

    Raises:
        ValueError: the stream is broken, or a task's return.json holds no JSON.
    """
    values: dict[int, Json] = {}
    if not stream:
        return values
    try:
        with tarfile.open(fileobj=io.BytesIO(stream), mode="r:") as archive:
            for member in archive:
                found, content = _NAME.fullmatch(member.name), archive.extractfile(member)
                if found and content:
                    values[int(found[1] or found[2])] = _value(content.read(), returned=found[1] is not None)
    except tarfile.TarError as error:
        raise ValueError(f"the answer broke off: {error}") from None
    return values


def _value(content: bytes, *, returned: bool) -> Json:
    text = content.decode("utf-8", "replace")
    return json.loads(text) if returned else text
