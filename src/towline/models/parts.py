"""Smaller parts of a job's description: mounts, mail, signals, and how a job goes on."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from towline.models.fields import ClusterPath, Environment, Line, Model, Text, Token
from towline.models.values import check_absolute_path

SIGNALS = {"HUP": 1, "INT": 2, "USR1": 10, "USR2": 12, "TERM": 15}
"""Signals that the prelude hands on to the command, with Linux' numbers."""

MailType = Literal[
    "NONE",
    "ALL",
    "BEGIN",
    "END",
    "FAIL",
    "REQUEUE",
    "INVALID_DEPEND",
    "STAGE_OUT",
    "TIME_LIMIT",
    "TIME_LIMIT_90",
    "TIME_LIMIT_80",
    "TIME_LIMIT_50",
    "ARRAY_TASKS",
]
"""The words of `sbatch --mail-type` (sbatch(1))."""


class Mount(Model):
    """A path of the cluster that the container sees.

    Attributes:
        source: absolute path on the cluster; must exist when the job is submitted.
        target: absolute path in the container.
        mode: `rw` or `ro`.
    """

    source: ClusterPath
    target: ClusterPath
    mode: Literal["rw", "ro"] = "rw"

    @classmethod
    def parse(cls, text: str) -> Mount:
        """Read `SRC`, `SRC:DST` or `SRC:DST:ro`.

        Raises:
            ValueError: it has more parts, an empty one, or another mode.
        """
        source, *rest = text.split(":")
        if len(rest) > 2 or (len(rest) == 2 and rest[1] not in ("ro", "rw")):
            raise ValueError(f"{text!r} is not a mount; write SRC, SRC:DST or SRC:DST:ro")
        mode = "ro" if rest[1:] == ["ro"] else "rw"
        return cls(source=source, target=rest[0] if rest else source, mode=mode)


def _mount(value: object) -> object:
    return Mount.parse(value) if isinstance(value, str) else value


def _mail_types(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip().upper() for part in value.split(","))
    return value


def _signal(value: object) -> object:
    """The signal's name; numbers and names with SIG before them are read too."""
    text = str(value).strip().upper().removeprefix("SIG")
    by_number = {str(number): name for name, number in SIGNALS.items()}
    return by_number.get(text, text)


AnyMount = Annotated[Mount, BeforeValidator(_mount, json_schema_input_type=Mount | str)]
Signal = Annotated[
    Literal["HUP", "INT", "USR1", "USR2", "TERM"], BeforeValidator(_signal, json_schema_input_type=str | int)
]


MailTypes = Annotated[
    tuple[MailType, ...],
    Field(min_length=1),
    BeforeValidator(_mail_types, json_schema_input_type=tuple[MailType, ...] | str),
]


class Mail(Model):
    """Mail that Slurm sends.

    Attributes:
        user: address or user name; the submitting user when not given.
        types: what Slurm writes about, in the words of `sbatch --mail-type`.
    """

    user: Token | None = None
    types: MailTypes = ("END", "FAIL")


class Resume(Model):
    """How the command goes on where it stopped, when it is started again. At least one of the first two is needed.

    Attributes:
        checkpoints: glob whose newest file shows how far the work is; relative ones lie in the results directory.
        exit_code: the code with which the command says that it stopped by itself and wants to be started again.
        args: words that are added to the command when it starts again.
        env: variables that are set in addition when it starts again.
        without_progress: starts in a row without a newer checkpoint after which the job is given up.
    """

    checkpoints: Line = ""
    exit_code: Annotated[int, Field(ge=1, le=119)] | None = None
    args: tuple[Text, ...] = ()
    env: Environment = Field(default_factory=dict)
    without_progress: Annotated[int, Field(ge=1, le=100)] = 3

    @model_validator(mode="after")
    def _progress_can_be_seen(self) -> Resume:
        if not self.checkpoints and self.exit_code is None:
            raise ValueError("give checkpoints or exit_code, by which it is seen that the work moves forward")
        if ".." in self.checkpoints.split("/"):
            raise ValueError("checkpoints: it must not contain '..'")
        return self


SHARED = ("lustre", "slurm")
"""Schemes of paths on the cluster's shared file system."""
REMOTE = ("s3", "gs", "hf", "hf_model", "hf_dataset", "ngc", "https", "http")
"""Schemes of data that lies elsewhere, and is brought to the shared file system before a job starts."""


def scheme_of(uri: str) -> str:
    """A URI's scheme; empty for a path."""
    scheme, separator, _ = uri.partition("://")
    return scheme if separator else ""


def is_remote(uri: str) -> bool:
    """Whether it is data that lies elsewhere."""
    return scheme_of(uri) in REMOTE


def check_uri(text: str) -> str:
    """Where data comes from or goes to: an absolute path of the cluster, or a URI with its scheme.

    Raises:
        ValueError: it is relative, local, or has no scheme that is known.
    """
    scheme, separator, rest = text.partition("://")
    if not text.strip() or (scheme in (*SHARED, *REMOTE) and separator and not _names_something(scheme, rest)):
        raise ValueError(
            f"{text!r} names nothing; give an absolute path of the cluster, or a URI such as s3://BUCKET/PREFIX"
        )
    if separator and scheme.isascii() and scheme.replace("_", "").replace("+", "").isalnum() and rest:
        if scheme.lower() == "file":
            raise ValueError(_local(text, "/" + rest.lstrip("/")))
        if path := shared_path(text):
            check_absolute_path(path)
        elif scheme not in REMOTE:
            raise ValueError(f"{text!r} has a scheme that is not known; there are {', '.join((*SHARED, *REMOTE))}")
        elif any(ord(char) <= 32 or ord(char) == 127 for char in text):
            raise ValueError(f"{text!r} must not contain blanks or control characters")
        elif "@" in rest.partition("/")[0] and scheme in ("https", "http"):
            raise ValueError("a URL must not carry a user or password; give the host a line in ~/.netrc on the cluster")
        return text
    if not text.startswith("/"):
        raise ValueError(_local(text, text))
    return check_absolute_path(text)


def check_destination(text: str) -> str:
    """Where results go to: a path of the cluster's shared file system, or a URI with its scheme.

    Raises:
        ValueError: it lies on this machine, or its scheme is not known.
    """
    if scheme_of(text).lower() == "file" or not (text.startswith("/") or scheme_of(text) or not text.strip()):
        raise ValueError(
            f"{text!r} lies on this machine; bring results home with `towline results JOB --pull`, or name a place of "
            "the cluster"
        )
    return check_uri(text)


def _names_something(scheme: str, rest: str) -> bool:
    """Whether there is a path, or a host, bucket or owner, behind the scheme."""
    return bool(rest if scheme in SHARED else rest.partition("/")[0])


def _local(text: str, path: str) -> str:
    """What is wrong with a path of this machine as data, and the way out."""
    quoted = f"~/{shlex.quote(path[2:])}" if path.startswith("~/") and path[2:] else shlex.quote(path)
    return (
        f"{text!r} lies on this machine, not on the cluster's shared file system; bring it there with "
        f"`towline push {quoted}` and give the place that this prints (or a URI such as lustre:///data)"
    )


def shared_path(uri: str) -> str | None:
    """The path on the cluster's shared file system that a URI means; None for data that lies elsewhere.

    `lustre:///a` means `/a`, and `slurm://host/p` means `/host/p`, as TAO writes it.
    """
    if uri.startswith("/"):
        return uri
    scheme, _, rest = uri.partition("://")
    return "/" + rest.lstrip("/") if scheme in SHARED else None
