"""Small values as people write them: walltimes, memory sizes, names, and lines fit for a directive.

Each reader raises `ValueError` with a sentence that says what is accepted; models and doors turn it into a
`SpecError` that names the field.
"""

from __future__ import annotations

import re
from typing import TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]  # noqa: UP007 - 3.10 runs it
"""What JSON can hold."""

MINUTE, HOUR, DAY = 60, 3600, 86400
_UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
_SPOKEN = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_SLURM_DAYS = re.compile(r"(\d+)-(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?")
_SLURM_CLOCK = re.compile(r"(\d+)(?::(\d{1,2})(?::(\d{1,2}))?)?")
_MEMORY = re.compile(r"(\d+)\s*([KMGT])?(?:i?B)?", re.IGNORECASE)
_MEMORY_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TOKEN = re.compile(r"[A-Za-z0-9_.+@:/=,%\[\]&|*()~^-]+")
MAX_NAME = 64
MAX_WALLTIME = 366 * DAY


def parse_walltime(text: str) -> int:
    """Seconds of a walltime: `90m`, `1h30m`, `2d`, or Slurm's own `MM`, `MM:SS`, `HH:MM:SS`, `D-HH[:MM[:SS]]`.

    Slurm's forms are those of `sbatch --time` (sbatch(1)): a bare number is minutes.

    Raises:
        ValueError: the text is none of these, is zero, or asks for more than a year.
    """
    seconds = _spoken_seconds(text.strip().lower())
    if seconds is None:
        seconds = _slurm_seconds(text.strip())
    if seconds is None:
        raise ValueError(f"{text!r} is not a walltime; write 90m, 1h30m, 2d, HH:MM:SS or D-HH:MM:SS")
    if not 0 < seconds <= MAX_WALLTIME:
        raise ValueError(f"a time of {text!r} is out of range; it must be more than 0 and at most 366 days")
    return seconds


def _spoken_seconds(text: str) -> int | None:
    found = _SPOKEN.fullmatch(text)
    if not found or not any(found.groups()):
        return None
    parts = zip(found.groups(), (DAY, HOUR, MINUTE, 1), strict=True)
    return round(sum(float(count) * unit for count, unit in parts if count))


def _slurm_seconds(text: str) -> int | None:
    if found := _SLURM_DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return days * DAY + hours * HOUR + minutes * MINUTE + seconds
    if found := _SLURM_CLOCK.fullmatch(text):
        first, second, third = found.groups()
        if third is not None:
            return int(first) * HOUR + int(second) * MINUTE + int(third)
        return int(first) * MINUTE + int(second or 0)
    return None


def format_walltime(seconds: int) -> str:
    """The walltime as `sbatch --time` takes it, rounded up to whole minutes: `[D-]HH:MM:00`.

    Slurm keeps limits in minutes, so a part of a minute would be dropped there.
    """
    minutes = -(-seconds // MINUTE)
    days, rest = divmod(minutes, 24 * 60)
    clock = f"{rest // 60:02d}:{rest % 60:02d}:00"
    return f"{days}-{clock}" if days else clock


def parse_memory(text: str) -> int:
    """MiB of a memory size as `sbatch --mem` takes it: `64G`, `512M`, `1T`; a bare number is MiB.

    Raises:
        ValueError: the text is not a size, or is zero (Slurm reads `--mem=0` as "all of the node").
    """
    found = _MEMORY.fullmatch(text.strip())
    mib = int(int(found[1]) * _MEMORY_MIB[(found[2] or "M").upper()]) if found else 0
    if mib < 1:
        raise ValueError(f"{text!r} is not a memory size; write for example 512M, 64G or 1T")
    return mib


def check_env_name(name: str) -> str:
    """The name of an environment variable, as POSIX shells accept it.

    Raises:
        ValueError: it is empty or has characters that a shell would not take.
    """
    if not _ENV_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for an environment variable (letters, digits and _, no digit first)")
    return name


def check_job_name(name: str) -> str:
    """A job's name: letters, digits and `._-`, at most 64, so that it is safe in paths and in Slurm's answers.

    Raises:
        ValueError: it is empty, too long, has other characters, or is a number.
    """
    if name.isdigit():
        raise ValueError(f"{name!r} would be taken for a Slurm id; add a letter to the name")
    if not _JOB_NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise ValueError(f"{name!r} is not a job name; use letters, digits and ._- (at most {MAX_NAME}, no sign first)")
    return name


def check_token(value: str) -> str:
    """A value that may stand in an `#SBATCH` line: one word without blanks, quotes, newlines or backslashes.

    sbatch splits directive lines like a shell would and knows no safe quoting for all versions, so such
    values are refused rather than quoted.

    Raises:
        ValueError: the value is empty or has a character outside the plain ones.
    """
    if not _TOKEN.fullmatch(value) or value.startswith("-"):
        raise ValueError(f"{value!r} cannot stand in an #SBATCH line; use plain characters without blanks or newlines")
    return value


def check_one_line(value: str) -> str:
    """One line without control characters, as an `#SBATCH` line or a table can show it.

    Raises:
        ValueError: the text has more lines, or a control character.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise ValueError(f"{value!r} must be one line without control characters")
    return value


def check_directory(value: str) -> str:
    """A directory's name that is not empty.

    Raises:
        ValueError: it is.
    """
    if not value:
        raise ValueError("the directory's name is empty; write . for the one that you are in")
    return value


def check_clean_text(value: str) -> str:
    """Text without NUL bytes, which no shell, file name or argument can carry.

    Raises:
        ValueError: the text holds a NUL byte or cannot be written as UTF-8.
    """
    if "\0" in value:
        raise ValueError("it holds a NUL byte, which no command can carry")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds characters that cannot be written as UTF-8") from None
    return value


def check_absolute_path(path: str) -> str:
    """An absolute path with no `..`, no control characters, and no comma or colon, which Pyxis takes for its own.

    Raises:
        ValueError: the path breaks one of these rules.
    """
    check_clean_text(path)
    if not path.startswith("/"):
        raise ValueError(f"{path!r} must be an absolute path on the cluster")
    if ".." in path.split("/"):
        raise ValueError(f"{path!r} must not contain '..'")
    if any(ord(char) < 32 or ord(char) == 127 or char in ",:" for char in path):
        raise ValueError(f"{path!r} must not contain control characters, commas or colons")
    return path
