"""Jobs that prepare what other jobs need: images that become files, data that comes from elsewhere.

Each thing to be made has a directory `<place>/imports/<name>` with `attempts/<n>`, the Slurm jobs that have tried to
make it one after another (`scripts/imports.sh`). The jobs that need it wait for the newest in Slurm's hands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from towline.slurm.calls import Call, setup_files
from towline.slurm.doctor import Answer, parse_answer
from towline.slurm.scripts import script

State = Literal["none", "open", "alive", "gone", "unknown", "ended"]
"""Of an attempt: none was made; it is not known to be a job yet; Slurm has it; it is gone without a word; Slurm did not
say; it has told how it ended."""
_WORDS: dict[str, State] = {
    "open": "open",
    "alive": "alive",
    "gone": "gone",
    "unknown": "unknown",
    "ended": "ended",
}


@dataclass(frozen=True)
class Preparation:
    """The newest attempt to make something.

    Attributes:
        ready: whether what is to be made is there, and whole.
        size: its bytes.
        number: of the attempt; 0 for none.
        slurm_id: of its job; empty while it has none.
        state: what is known of it.
        stage: what the job is at, for example `import`, `check` or `keep`; empty before the start.
        bytes: what it has made so far.
        rate: bytes a second.
        end: what it wrote at its end: `code`, `stage`, `host` and others, each with its value.
        log: its last lines, of an image Enroot's.
        reference: the thing as the job that needs it names it; empty when no job was asked about.
    """

    ready: bool = False
    size: int = 0
    number: int = 0
    slurm_id: str = ""
    state: State = "none"
    stage: str = ""
    bytes: int = 0
    rate: int = 0
    end: Mapping[str, str] | None = None
    log: tuple[str, ...] = ()
    reference: str = ""

    @property
    def running(self) -> bool:
        """Whether a job may still make it."""
        return self.state in ("open", "alive", "unknown")

    @property
    def failed(self) -> bool:
        """Whether the newest attempt is over, and has not made it."""
        done = self.ready or (self.end or {}).get("code") == "0"
        return not (done or self.running or self.state == "none")

    @property
    def next_number(self) -> int:
        """The attempt to ask for: the one that is under way, else a new one."""
        return self.number if self.running else self.number + 1

    @property
    def doing(self) -> str:
        """The newest word of what it does."""
        steps = [line.removeprefix("[INFO] ") for line in self.log if line.startswith("[INFO] ")]
        return steps[-1] if steps else ""


def state_call(place: str, names: Sequence[str], setup: str = "") -> Call:
    """Ask how things and the jobs that make them are doing; read the answer with `parse_preparations`."""
    return Call("prepared", script("prepared"), (place, *names), setup_files(setup))


def needs_call(directory: str, setup: str = "") -> Call:
    """Ask the same of everything that is made for the job with this directory."""
    return Call("prepared-of", script("prepared-of"), (directory,), setup_files(setup))


def parse_preparations(stdout: str) -> dict[str, Preparation]:
    """Name → how it is doing.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete:
        raise ValueError("the answer broke off")
    names = [frame.removeprefix("made-") for frame in answer.facts if frame.startswith("made-")]
    return {name: _preparation(answer, name) for name in names}


def _preparation(answer: Answer, name: str) -> Preparation:
    frame = f"making-{name}"
    size, slurm, number = (
        answer.fact(f"made-{name}", "size"),
        answer.fact(frame, "slurm"),
        answer.fact(frame, "number"),
    )
    made, _, rate = [*answer.fact(frame, "progress").split(" "), "", ""][:3]
    word = answer.fact(frame, "state")
    pairs = (line.partition("=") for line in answer.all(frame, "end"))
    return Preparation(
        ready=size.isdecimal(),
        size=int(size) if size.isdecimal() else 0,
        number=int(number) if number.isdecimal() else 0,
        slurm_id=slurm.replace("-", ""),
        state=_WORDS.get(word, "none"),
        stage=answer.fact(frame, "stage"),
        bytes=int(made) if made.isdecimal() else 0,
        rate=int(rate) if rate.isdecimal() else 0,
        end={key: value for key, _, value in pairs} or None,
        log=answer.all(frame, "log"),
        reference=answer.fact(f"of-{name}", "reference"),
    )
