"""Secrets: named in a spec, and never a part of it. A value is held by `Secret`, which shows itself to nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MAX_SECRET_BYTES = 64 * 1024
"""Most bytes of one value. Linux takes 128 KiB for one variable, its name included (execve(2), MAX_ARG_STRLEN)."""

MAX_SECRETS_BYTES = 512 * 1024
"""Most bytes of all values of a job; they share the room for a program's environment with everything else."""


class Secret:
    """One value, which neither `print` nor a traceback nor `repr` shows.

    Args:
        value: text or bytes without NUL. Text that came from the environment or a file name keeps bytes that are no
            UTF-8.

    Raises:
        ValueError: the value is empty, too long, or holds a NUL byte; the sentence does not show it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str | bytes) -> None:
        self._value = check_secret(value)

    def reveal(self) -> bytes:
        """The value itself, for the one who writes it to where it is needed."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written into files")


AnySecret = str | bytes | Secret
Secrets = Mapping[str, AnySecret] | Callable[[str], "AnySecret | None"]
"""Where the values of a spec's secrets come from: name → value, or a function of the name; None when it has none."""


def check_secret(value: str | bytes) -> bytes:
    """The value's bytes.

    Raises:
        ValueError: it cannot be the value of a variable; the sentence does not show it.
    """
    if not isinstance(value, (str, bytes)):  # pyright: ignore[reportUnnecessaryIsInstance]  callers without types
        raise ValueError(f"it is a value of type {type(value).__name__}, not text or bytes")
    try:
        data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError("it holds characters that cannot be written as UTF-8") from None
    if not data:
        raise ValueError("it is empty")
    if b"\0" in data:
        raise ValueError("it holds a NUL byte, which no variable can carry")
    if len(data) > MAX_SECRET_BYTES:
        raise ValueError(f"it has {len(data)} bytes, and a variable takes {MAX_SECRET_BYTES}; mount a file instead")
    return data
