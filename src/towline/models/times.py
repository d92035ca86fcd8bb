"""Points in time as `sbatch --begin` and `--deadline` take them, on the login host's clock."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from towline.models.values import parse_walltime

_UNITS = "seconds|minutes|hours|days|weeks"
_IN_SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 7 * 86400}
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?"
_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_WHEN = re.compile(
    rf"now(?:\+\d{{1,9}}(?:{_UNITS})?)?|today|tomorrow|midnight|noon|{_CLOCK}|{_DATE}(?:T{_CLOCK})?",
)
_WITH_ZONE = re.compile(rf"({_DATE})[T ]({_CLOCK})\s*(Z|[+-]\d\d:?\d\d)", re.IGNORECASE)


def check_when(text: str) -> str:
    """A point in time in a form that every Slurm reads the same way (sbatch(1), `--begin`).

    `+2h` becomes `now+7200seconds`, and a time with a zone (`2026-03-01T08:00:00Z`) Slurm's `uts` and the seconds
    since 1970, which do not depend on the cluster's clock settings.

    Raises:
        ValueError: the text is none of the forms.
    """
    if text.startswith("+"):
        return f"now+{parse_walltime(text[1:])}seconds"
    if re.fullmatch(r"uts\d{1,12}", text):
        return text
    try:
        if found := _WITH_ZONE.fullmatch(text):
            return f"uts{_seconds(*found.groups())}"
        if _WHEN.fullmatch(text):
            _check_date(text)
            return text
    except ValueError:
        pass
    raise ValueError(
        f"{text!r} is not a time; write +2h, HH:MM, tomorrow, YYYY-MM-DD, YYYY-MM-DDTHH:MM[:SS] "
        "(the cluster's clock), or the last with a zone such as Z or +01:00"
    )


def seconds_from_now(when: str) -> int | None:
    """How many seconds after the submission `now+7200seconds` and its like are; None for the other forms."""
    found = re.fullmatch(rf"now(?:\+(\d+)({_UNITS})?)?", when)
    return int(found[1] or 0) * _IN_SECONDS[found[2] or "seconds"] if found else None


def _seconds(date: str, clock: str, zone: str) -> int:
    offset = "+0000" if zone.upper() == "Z" else zone.replace(":", "")
    parsed = datetime.strptime(f"{date}T{_full(clock)}{offset}", "%Y-%m-%dT%H:%M:%S%z")
    return int(parsed.astimezone(timezone.utc).timestamp())


def _full(clock: str) -> str:
    return clock if clock.count(":") == 2 else f"{clock}:00"


def _check_date(text: str) -> None:
    date, _, _ = text.partition("T")
    if re.fullmatch(_DATE, date):
        datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=timezone.utc)
