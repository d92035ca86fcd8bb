"""What the end of a job that makes an image means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from towline.container.reference import registry_form
from towline.container.registry import NGC, machine_of
from towline.models.image import Image
from towline.models.units import size
from towline.slurm.preparation import Preparation
from towline.slurm.space import parse_space


@dataclass(frozen=True)
class Failure:
    """Why an import failed.

    Attributes:
        kind: stable word: `credentials`, `not-found`, `registry`, `space`, `no-enroot`, `not-squashfs`, `stopped` or
            `other`.
        why: Enroot's own line, or what is known.
        fix: what to do.
    """

    kind: str
    why: str
    fix: str


_SPACE = re.compile(r"no space left|quota exceeded|write failed because", re.IGNORECASE)
_AWAY = re.compile(r"directory nonexistent|no such file or directory", re.IGNORECASE)
_FORBIDDEN = re.compile(r"(?:could not|cannot|can't) (?:create|open|move|write)\b.*permission denied", re.IGNORECASE)
_MISSING = re.compile(r"error code: 404|manifest unknown|name unknown", re.IGNORECASE)
_DENIED = re.compile(r"error code: 40[13]|unauthorized|denied", re.IGNORECASE)
_CURL = re.compile(r"curl: \((?:5|6|7|28|35|52|56|60)\)|error code: 5\d\d", re.IGNORECASE)
_ASKED = re.compile(r"\[INFO\] (Authenticating with user|Using credentials)")
_NOISE = re.compile(r"\[INFO\]|\[WARN\]")


def failure_of(image: Image, found: Preparation) -> Failure | None:
    """What the end of an import means; None when it did not fail.

    A password that is refused leaves no error line (Enroot 4.1): its last word is whom it asked as.
    """
    end = found.end or {}
    if not found.failed:
        return None
    return _by_stage(found, end) or _by_words(image, found.log, end)


def _by_stage(found: Preparation, end: Mapping[str, str]) -> Failure | None:
    """What the job itself knows of its failure."""
    words, stage = _last_word(found.log), end.get("stage", "stopped")
    if stage == "stopped":
        why = f"its job {found.slurm_id}" if found.slurm_id else "it"
        why += " was ended before it was done"
        why += f"; Enroot's last word: {words}" if words else ""
        return Failure("stopped", why, "Run it again; more `import_time` or `import_memory` may help.")
    if stage == "no-enroot":
        why = f"there is no enroot on {end.get('host', 'the node')}"
        return Failure(stage, why, 'Set `import_partition` to nodes that have it, or `image_import = "never"`.')
    if stage == "keep" and _AWAY.search(words):
        return Failure("other", words, "Make that directory, or set `image_cache` to another one.")
    if _FORBIDDEN.search(words):  # before what registries say, who deny things, too
        place = end.get("cache", "").partition(" ")[2] or "the image cache"
        return Failure(
            "other", f"{words}: {place}", "Make it writable for yourself, or set `image_cache` to another directory."
        )
    if stage in ("scratch", "keep") or _SPACE.search("\n".join(found.log)):
        rooms = [_room(end.get(place, "")) for place in ("cache", "scratch")]
        if limits := parse_space(end.get("limits", "").replace("~", "\n")):
            rooms += [quota.text for quota in limits.full]
        made = end.get("made", "")
        came = f"it had come to {size(int(made))}" if made.isdecimal() and made != "0" else ""
        why = f"{words or 'it could not be written'}; {', '.join(filter(None, [came, *rooms]))}"
        return Failure("space", why, "Make room there, or set `image_cache` to another directory.")
    if stage == "check":
        return Failure("not-squashfs", "what Enroot made is not a whole squashfs file", "Run it again.")
    return None


def _by_words(image: Image, log: Sequence[str], end: Mapping[str, str]) -> Failure:
    """What Enroot said of its failure."""
    words, text = _last_word(log), "\n".join(log)
    registry = image.registry or "docker.io"
    check = f"towline registry check {registry_form(image)}"
    if _MISSING.search(text):
        return Failure("not-found", words, f"See that repository and tag are right: {check}")
    if _DENIED.search(text) or _ASKED.match(words):
        user = "" if machine_of(registry) == NGC else " --user NAME"
        return Failure(
            "credentials", f"{registry} does not give it: {words}", f"towline registry login {registry}{user}"
        )
    if _CURL.search(text):
        return Failure("registry", words, "The registry did not answer; try again in a while.")
    why = words or f"enroot ended with exit code {end.get('code')}"
    return Failure("other", why, f"{check} may say more.")


def _last_word(log: Sequence[str]) -> str:
    """The line that tells why: an error before anything else, else the last one."""
    said = [line.strip() for line in log if line.strip()]
    errors = [line for line in said if line.startswith(("[ERROR]", "curl:")) or _SPACE.search(line)]
    return (errors or [line for line in said if not _NOISE.match(line)] or said or [""])[-1]


def _room(text: str) -> str:
    kib, _, path = text.partition(" ")
    return f"{path or 'the scratch directory'} has {size(int(kib) * 1024)} free" if kib.isdecimal() else ""
