"""`JobSpec`: what the user asks for. One definition for flags, files and Python; unknown keys are errors.

A spec is checked when it is made. What only a cluster can tell (partitions, limits, whether a path exists) is
checked by the plan.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from towline.models.errors import SpecError
from towline.models.image import Image
from towline.models.values import (
    check_absolute_path,
    check_clean_text,
    check_env_name,
    check_job_name,
    check_token,
    parse_memory,
    parse_walltime,
)

MAX_COMMAND_BYTES = 1 << 20
RESERVED_ENV = ("TOWLINE_", "SLURM_", "SBATCH_", "SRUN_")
"""Prefixes of variables that belong to Towline and Slurm and cannot be set by a spec."""


def _walltime(value: object) -> object:
    return parse_walltime(value) if isinstance(value, str) else value


def _memory(value: object) -> object:
    return parse_memory(value) if isinstance(value, str) else value


def _words(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return value


def _own_env_name(name: str) -> str:
    check_env_name(name)
    if name.startswith(RESERVED_ENV):
        raise ValueError(f"{name} belongs to Towline or Slurm and is set by them; choose another name")
    return name


def _image_text(value: str) -> str:
    Image.parse(value)
    return value


Token = Annotated[str, AfterValidator(check_token)]
Tokens = Annotated[tuple[Token, ...], BeforeValidator(_words)]
ClusterPath = Annotated[str, AfterValidator(check_absolute_path)]
Text = Annotated[str, AfterValidator(check_clean_text)]
EnvName = Annotated[str, AfterValidator(_own_env_name)]
Walltime = Annotated[int, BeforeValidator(_walltime), Field(gt=0, le=366 * 86400)]
MemoryMiB = Annotated[int, BeforeValidator(_memory), Field(gt=0)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False, validate_default=True)


class Mount(_Model):
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


AnyMount = Annotated[Mount, BeforeValidator(_mount)]


class Resources(_Model):
    """What is asked of Slurm for the whole allocation.

    Attributes:
        nodes: number of nodes.
        gpus_per_node: GPUs on each node; 0 asks for none.
        gpu_type: type of the GPUs as the site's gres names it; any when empty.
        tasks_per_node: tasks of the step on each node; 1 suits torchrun, accelerate and TAO entrypoints.
        cpus_per_task: CPUs of each task; the site's default when not given.
        memory: memory per node in MiB (`64G` is read too); the site's default when not given.
        time: walltime in seconds (`4h`, `30m`, `1-00:00:00` are read too); the profile's or the
            partition's default when not given.
        exclusive: whether the nodes are shared with no other job.
    """

    nodes: Count = 1
    gpus_per_node: Annotated[int, Field(ge=0, le=1024)] = 0
    gpu_type: Token | None = None
    tasks_per_node: Count = 1
    cpus_per_task: Count | None = None
    memory: MemoryMiB | None = None
    time: Walltime | None = None
    exclusive: bool = False

    @model_validator(mode="after")
    def _type_of_something(self) -> Resources:
        if self.gpu_type and not self.gpus_per_node:
            raise ValueError("gpu_type: say with gpus_per_node how many GPUs of that type each node needs")
        return self


class JobSpec(_Model):
    """One job: an image, a command, and what it needs.

    Attributes:
        version: version of this schema.
        command: the program and its arguments; or one text for `/bin/sh` in `shell`.
        shell: shell text instead of a command.
        image: a `.sqsh` path or an image reference; the profile's default when not given.
        name: the job's name; derived from the command when not given.
        resources: what is asked of Slurm.
        partition: one or several partitions; the profile's default when empty.
        account, qos, reservation, constraint: passed on to Slurm.
        nodelist, exclude: node names or ranges that must, or must not, be used.
        env: public environment of the command; secrets do not belong here.
        mounts: paths of the cluster that the container sees, added to the profile's.
        workdir: working directory in the container; the image's own when not given.
        mount_home: whether the user's home directory is mounted in the container.
        restart: `on-fault` lets Slurm start the job again after node faults and preemption; `never` does not.
        comment: comment for the user and the site (some sites read policy from it).
    """

    version: Literal[1] = 1
    command: tuple[Text, ...] = ()
    shell: Text = ""
    image: Annotated[str, AfterValidator(_image_text)] | None = None
    name: Annotated[str, AfterValidator(check_job_name)] = "job"
    resources: Resources = Resources()
    partition: Tokens = ()
    account: Token | None = None
    qos: Token | None = None
    reservation: Token | None = None
    constraint: Token | None = None
    nodelist: Token | None = None
    exclude: Token | None = None
    env: Mapping[EnvName, Text] = Field(default_factory=dict)
    mounts: tuple[AnyMount, ...] = ()
    workdir: ClusterPath | None = None
    mount_home: bool = False
    restart: Literal["on-fault", "never"] = "on-fault"
    comment: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _name_after_command(cls, data: Any) -> Any:
        if isinstance(data, dict):
            fields = cast("dict[str, Any]", data)
            if fields.get("name") in (None, ""):
                return {**fields, "name": name_of_command(fields.get("command"))}
        return data  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _one_command(self) -> JobSpec:
        if bool(self.command) == bool(self.shell.strip()):
            raise ValueError("give either a command or shell text" if self.command else "the command is empty")
        if self.command and not self.command[0]:
            raise ValueError("the command is empty: its first word has no characters")
        if sum(len(word.encode()) for word in self.command) + len(self.shell.encode()) > MAX_COMMAND_BYTES:
            raise ValueError("the command is longer than 1 MiB; put it into a file and run that")
        if any(ord(char) < 32 or ord(char) == 127 for char in self.comment):
            raise ValueError("comment: it must be one line, for it stands in an #SBATCH line")
        return self

    @classmethod
    def build(cls, **fields: Any) -> JobSpec:
        """A spec from plain values.

        Raises:
            SpecError: a value cannot be right; every wrong field is named with its reason.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise spec_error(error) from None

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        return self.shell or shlex.join(self.command)


def name_of_command(command: object) -> str:
    """A job name made from the command's program: its base name without what a job name cannot hold."""
    words: list[str] = []
    if isinstance(command, (tuple, list)):
        words = [word for word in cast("list[object]", command) if isinstance(word, str)]
    scripts = [word for word in words[:3] if word.endswith((".py", ".sh"))]
    base = (scripts or words or ["job"])[0].rstrip("/").rpartition("/")[2]
    clean = "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "-" for char in base)
    clean = clean.removesuffix(".py").removesuffix(".sh").lstrip("_.-")[:40]
    return f"job-{clean}" if clean.isdigit() else clean or "job"


def spec_error(error: ValidationError) -> SpecError:
    """The validation's findings as one error in the user's words."""
    findings = [_finding(dict(item)) for item in error.errors(include_url=False, include_context=False)]
    return SpecError(
        "the job cannot be run as it is described",
        why="\n".join(findings),
        fix="Correct the value and run the command again; nothing was sent to the cluster.",
    )


def _finding(item: dict[str, Any]) -> str:
    where = ".".join(str(part) for part in item["loc"] if part != "[key]")
    if item["type"] == "extra_forbidden":
        return f"{where}: there is no such setting{_near(where)}"
    reason = str(item["msg"]).removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason


def _near(where: str) -> str:
    known = [*JobSpec.model_fields, *(f"resources.{name}" for name in Resources.model_fields)]
    found = [name for name in known if name.endswith("." + where)] or difflib.get_close_matches(where, known, n=3)
    return f"; did you mean {' or '.join(found)}?" if found else ""
