"""The times that log lines bear, for `towline logs --since`. Slurm keeps no time with what a job writes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_HEAD = 160
"""Characters at the beginning of a line in which its time is looked for."""
_DAY = re.compile(
    r"(?<!\d)(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,]\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_NO_YEAR = re.compile(
    r"(?:^|[\s\[])(?:[IWEF](?P<m>\d\d)(?P<d>\d\d)|(?P<month>\d\d)-(?P<day>\d\d)) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
)
"""glog's `I0310 08:15:00`, and `03-10 08:15:00`."""
_NO_DAY = re.compile(r"^\W{0,2}(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)\b")


def time_of(line: str, now: datetime) -> datetime | None:
    """When the line says that it was written; None when it says nothing that can be read.

    Args:
        line: its text.
        now: the time on the cluster, with its zone; a line without a zone, a year or a day is as late as it can be.
    """
    head = line[:_HEAD]
    try:
        if found := _DAY.search(head):
            day = int(found["year"]), int(found["month"]), int(found["day"])
            return _moment(found, day, _zone(found["zone"]) or now.tzinfo)
        if found := _NO_YEAR.search(head):
            day = now.year, int(found["m"] or found["month"]), int(found["d"] or found["day"])
            moment = _moment(found, day, now.tzinfo)
            return moment if moment <= now + timedelta(days=1) else moment.replace(year=now.year - 1)
        if found := _NO_DAY.search(head):
            moment = _moment(found, (now.year, now.month, now.day), now.tzinfo)
            return moment if moment <= now + timedelta(minutes=5) else moment - timedelta(days=1)
    except ValueError:  # 31 February
        return None
    return None


def _moment(found: re.Match[str], day: tuple[int, int, int], zone: object) -> datetime:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"])
    moment = datetime(*day, hour, minute, second)
    return moment.replace(tzinfo=zone if isinstance(zone, timezone) else timezone.utc)


def _zone(text: str | None) -> timezone | None:
    if not text:
        return None
    if text == "Z":
        return timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


class Since:
    """Whether lines are as new as that; one that bears no time is as old as the one before it.

    Args:
        begin: the time, with its zone.
        now: the time on the cluster.
    """

    def __init__(self, begin: datetime, now: datetime) -> None:
        self._begin = begin
        self._now = now
        self._reached: dict[str, bool] = {}

    def reached(self, source: str, line: str) -> bool:
        """Whether this line of that source is new enough; before its first time everything is."""
        moment = time_of(line, self._now)
        if moment is not None:
            self._reached[source] = moment >= self._begin
        return self._reached.get(source, True)
