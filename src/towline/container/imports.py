"""The jobs that make images: how one is asked for, how it is doing, and what its end means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from towline.container.reference import registry_form
from towline.container.registry import NGC, machine_of
from towline.models.image import Image
from towline.slurm.calls import Call
from towline.slurm.doctor import Answer, parse_answer
from towline.slurm.scripts import script

State = Literal["none", "open", "alive", "gone", "unknown", "ended"]
"""Of an import: none was tried; it is not known to be a job yet; Slurm has it; it is gone without a word; Slurm did not
say; it has told how it ended."""
_WORDS: dict[str, State] = {
    "open": "open",
    "alive": "alive",
    "gone": "gone",
    "unknown": "unknown",
    "ended": "ended",
}


@dataclass(frozen=True)
class Import:
    """The newest attempt to make an image.

    Attributes:
        ready: whether the image is there, and whole.
        size: its bytes.
        number: of the attempt; 0 for none.
        slurm_id: of its job; empty while it has none.
        state: what is known of it.
        stage: `import`, `check`, `keep`; empty before the start.
        bytes: what it has made so far.
        end: what it wrote at its end: `code`, `stage`, `cache`, `scratch`, `host`, each with its value.
        log: Enroot's last lines.
        reference: the image as the job names it; empty when no job was asked about.
    """

    ready: bool = False
    size: int = 0
    number: int = 0
    slurm_id: str = ""
    state: State = "none"
    stage: str = ""
    bytes: int = 0
    end: Mapping[str, str] | None = None
    log: tuple[str, ...] = ()
    reference: str = ""

    @property
    def running(self) -> bool:
        """Whether a job may still make the image."""
        return self.state in ("open", "alive", "unknown")

    @property
    def next_number(self) -> int:
        """The attempt to ask for: the one that is under way, else a new one."""
        return self.number if self.running else self.number + 1

    @property
    def doing(self) -> str:
        """Enroot's newest word of what it does."""
        steps = [line.removeprefix("[INFO] ") for line in self.log if line.startswith("[INFO] ")]
        return steps[-1] if steps else ""


def state_call(cache: str, names: Sequence[str], setup: str = "") -> Call:
    """Ask how images and their imports are doing; read the answer with `parse_imports`."""
    return Call("image-state", script("image-state"), (cache, *names), _setup(setup))


def imports_of_call(directory: str, setup: str = "") -> Call:
    """Ask the same of the images that the job with this directory needs."""
    return Call("image-of", script("image-of"), (directory,), _setup(setup))


def parse_imports(stdout: str) -> dict[str, Import]:
    """Name → how it is doing.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete:
        raise ValueError("the answer broke off")
    names = [frame.removeprefix("image-") for frame in answer.facts if frame.startswith("image-")]
    return {name: _import(answer, name) for name in names}


def _import(answer: Answer, name: str) -> Import:
    frame = f"import-{name}"
    size, slurm, number = (
        answer.fact(f"image-{name}", "size"),
        answer.fact(frame, "slurm"),
        answer.fact(frame, "number"),
    )
    made, word = answer.fact(frame, "progress"), answer.fact(frame, "state")
    pairs = (line.partition("=") for line in answer.all(frame, "end"))
    return Import(
        ready=size.isdecimal(),
        size=int(size) if size.isdecimal() else 0,
        number=int(number) if number.isdecimal() else 0,
        slurm_id=slurm.replace("-", ""),
        state=_WORDS.get(word, "none"),
        stage=answer.fact(frame, "stage"),
        bytes=int(made) if made.isdecimal() else 0,
        end={key: value for key, _, value in pairs} or None,
        log=answer.all(frame, "log"),
        reference=answer.fact(f"of-{name}", "reference"),
    )


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
_MISSING = re.compile(r"error code: 404|manifest unknown|name unknown", re.IGNORECASE)
_DENIED = re.compile(r"error code: 40[13]|unauthorized|denied", re.IGNORECASE)
_CURL = re.compile(r"curl: \((?:5|6|7|28|35|52|56|60)\)|error code: 5\d\d", re.IGNORECASE)
_ASKED = re.compile(r"\[INFO\] (Authenticating with user|Using credentials)")
_NOISE = re.compile(r"\[INFO\]|\[WARN\]")


def failure_of(image: Image, found: Import) -> Failure | None:
    """What the end of an import means; None when it did not fail.

    A password that is refused leaves no error line (Enroot 4.1): its last word is whom it asked as.
    """
    end = found.end or {}
    if found.ready or found.running or found.state == "none" or end.get("code") == "0":
        return None
    return _by_stage(found, end) or _by_words(image, found.log, end)


def _by_stage(found: Import, end: Mapping[str, str]) -> Failure | None:
    """What the job itself knows of its failure."""
    words, stage = _last_word(found.log), end.get("stage", "stopped")
    if stage == "stopped":
        why = f"its job {found.slurm_id} was ended before it was done"
        why += f"; Enroot's last word: {words}" if words else ""
        return Failure("stopped", why, "Run it again; more `import_time` or `import_memory` may help.")
    if stage == "no-enroot":
        why = f"there is no enroot on {end.get('host', 'the node')}"
        return Failure(stage, why, 'Set `import_partition` to nodes that have it, or `image_import = "never"`.')
    if stage in ("scratch", "keep") or _SPACE.search("\n".join(found.log)):
        rooms = [_room(end.get(place, "")) for place in ("cache", "scratch")]
        why = f"{words or 'it could not be written'}; {', '.join(filter(None, rooms))}"
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
    return f"{path or 'the scratch directory'} has {int(kib) / (1 << 20):.1f} GiB free" if kib.isdecimal() else ""


def _setup(line: str) -> dict[str, bytes | Path]:
    return {"setup": f"{line}\n".encode()} if line.strip() else {}
