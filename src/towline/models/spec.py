"""`JobSpec`: what the user asks for. One definition for flags, files and Python; unknown keys are errors.

A spec is checked when it is made. What only a cluster can tell (partitions, limits, whether a path exists) is
checked by the plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from towline.models.array import check_array, parse_tasks
from towline.models.container import Container
from towline.models.dependency import AnyDependency, as_dependencies
from towline.models.errors import SpecError
from towline.models.fields import (
    ClusterPath,
    Environment,
    Grace,
    HangTime,
    ImageText,
    Labels,
    Line,
    Model,
    SecretNames,
    Text,
    Token,
    Tokens,
    Walltime,
    When,
)
from towline.models.network import Network
from towline.models.parts import AnyMount, Mail, Mount, Resume, Signal, check_destination, check_uri, is_remote
from towline.models.resources import Resources
from towline.models.roles import Role, check_roles, nodes_of, tasks_of
from towline.models.sbatch_options import check_option, read_options
from towline.models.spec_errors import Place, nowhere, spec_error
from towline.models.values import check_directory, check_job_name

__all__ = ["AnyMount", "JobSpec", "Mail", "Mount", "Resources", "Resume", "Text", "Token", "Tokens", "Walltime"]

MAX_COMMAND_BYTES = 1 << 20
MAX_SHELL_BYTES = 32 << 20
"""Shell text is a file of the job and no argument, and may hold what it works with."""
MAX_ARGUMENTS = 32 << 20
"""Characters of all tasks' arguments."""
MAX_WORD = (128 << 10) - 1
"""Bytes of one argument (MAX_ARG_STRLEN, execve(2))."""

Uri = Annotated[str, AfterValidator(check_uri)]
Fetch = Literal["in-job", "in-job-any-size"]
Destination = Annotated[str, AfterValidator(check_destination)]
LogPer = Literal["job", "node", "rank"]
OptionsAsWritten = Mapping[str, str | int | float | bool | None] | tuple[str, ...] | str
SbatchOptions = Annotated[Mapping[str, str], BeforeValidator(read_options, json_schema_input_type=OptionsAsWritten)]


def _version(value: object) -> object:
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class JobSpec(Model):
    """One job: an image, a command, and what it needs.

    Attributes:
        version: version of this schema.
        command: the program and its arguments; or one text for `/bin/sh` in `shell`.
        shell: shell text instead of a command.
        roles: groups of nodes with a command each, in place of one command for all; see `towline.models.roles`.
        image: a `.sqsh` path or an image reference; the profile's default when not given.
        name: the job's name; derived from the command when not given.
        resources: what is asked of Slurm.
        launch: how the command is started: `node` once on each node (or as often as `tasks_per_node` says), for
            commands that start their own workers (torchrun, accelerate, TAO's entrypoints); `gpu` once for each
            GPU; `mpi` as MPI ranks, with the help of `srun --mpi`.
        partition: one or several partitions; the profile's default when empty.
        account, qos, reservation, constraint: passed on to Slurm.
        nodelist, exclude: node names or ranges that must, or must not, be used.
        env: public environment of the command; secrets do not belong here.
        secrets: names of variables whose values are secret; they are given when the job is submitted.
        mounts: paths of the cluster that the container sees, added to the profile's.
        workdir: working directory in the container; the image's own when not given.
        code: directory on this machine whose files (those that git tracks, or would) the job gets for reading, as its
            working directory: at `workdir`, or `/code`; in a file, a relative one is relative to the file.
        mount_home: whether the user's home directory is mounted in the container.
        container: how the container is set up; see `towline.models.container`.
        image_import: `never` starts from the registry, `always` from a file that a job of its own makes of the image
            first; what the profile says when not given.
        inputs: path in the container → where its data comes from: an absolute path of the cluster or a URI.
        fetch: path in the container of an input from elsewhere → `in-job` when the job itself shall bring it, which is
            for small files; `in-job-any-size` although GPUs wait meanwhile. Otherwise a CPU job brings it before.
        outputs: path below the results directory → where a CPU job takes it once the job has succeeded: `s3://`, `gs://`
            or a path of the shared file system.
        network: the network that the job trains, and its datasets: their roots fill keys of its specification.
        begin: time before which the job does not start.
        deadline: time by which it must have ended; Slurm removes it when it cannot.
        signal: signal to every rank before the walltime ends, so that the command can save its work: `TERM`,
            `INT`, `HUP`, `USR1` or `USR2`; `TERM` when only `grace` is given.
        grace: seconds before the end at which the signal comes (`5m` is read too; 60 when only `signal` is given, or
            the job can resume and has 4 minutes or more).
            Slurm may send it up to a minute early (sbatch(1), `--signal`).
        restart: `on-fault` starts the job again after faults of nodes and the cluster, preemption and, if it can
            resume, the walltime; `never` does not; what the profile says when not given.
        retries: the most new starts that faults may cost.
        hang_after: seconds (`30m` is read too) without a byte in any log, use of a GPU or change in the results after
            which the job is taken for hung: its stacks are written down, and it is started again. Never when not given.
        status_decides: whether a job that ended with code 0 has failed when the last word in its `status.json` (in the
            results directory) is FAILURE; yes under the preset `tao`, no elsewhere, when not given.
        resume: how the command goes on where it stopped; without it a job that ran out of time is over.
        log_per: `rank` gives each rank log files of its own: it is always known whose words these are, and hundreds of
            ranks do not write through one process. `node` gives each node some; `job` has all in one. What the profile
            says when not given.
        mail: mail that Slurm sends.
        comment: comment for the user and the site (some sites read policy from it), added to the profile's.
        labels: names and texts of your own, kept with the job.
        sbatch: further options of `sbatch`, name → value; empty for those that take none.
        array: numbers of the tasks that one submission starts, each with a log, an exit code and results of its own:
            `0-99`, `1,3,5`, `0-99:10`, or `0-99%8` for 8 at a time. What is asked for is given to each task.
        arguments: words that are added to the command of each task, in the order of their numbers; without an `array`
            they make one that counts from 0.
        depends_on: what must have become of other jobs first: `JOB` (which must succeed), `KIND:JOB`, or in Python a
            job object.
    """

    version: Annotated[Literal[1], BeforeValidator(_version, json_schema_input_type=Literal[1])] = 1
    command: tuple[Text, ...] = ()
    shell: Text = ""
    roles: tuple[Role, ...] = ()
    image: ImageText | None = None
    name: Annotated[str, AfterValidator(check_job_name)] = "job"
    resources: Resources = Resources()
    launch: Literal["node", "gpu", "mpi"] = "node"
    partition: Tokens = ()
    account: Token | None = None
    qos: Token | None = None
    reservation: Token | None = None
    constraint: Token | None = None
    nodelist: Token | None = None
    exclude: Token | None = None
    env: Environment = Field(default_factory=dict)
    secrets: SecretNames = ()
    mounts: tuple[AnyMount, ...] = ()
    workdir: ClusterPath | None = None
    code: Annotated[Text, AfterValidator(check_directory)] | None = None
    mount_home: bool = False
    container: Container = Container()
    image_import: Literal["always", "never"] | None = None
    inputs: Mapping[ClusterPath, Uri] = Field(default_factory=dict)
    fetch: Mapping[ClusterPath, Fetch] = Field(default_factory=dict)
    outputs: Mapping[Line, Destination] = Field(default_factory=dict)
    network: Network | None = None
    begin: When | None = None
    deadline: When | None = None
    signal: Signal | None = None
    grace: Grace | None = None
    restart: Literal["on-fault", "never"] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] = 10
    hang_after: HangTime | None = None
    status_decides: bool | None = None
    resume: Resume | None = None
    log_per: LogPer | None = None
    mail: Mail | None = None
    comment: Line = ""
    labels: Labels = Field(default_factory=dict)
    sbatch: SbatchOptions = Field(default_factory=dict)
    array: Annotated[str, AfterValidator(check_array)] | None = None
    arguments: tuple[tuple[Text, ...], ...] = ()
    depends_on: Annotated[tuple[AnyDependency, ...], BeforeValidator(as_dependencies)] = ()

    @model_validator(mode="before")
    @classmethod
    def _name_after_command(cls, data: Any) -> Any:
        if isinstance(data, dict):
            fields = cast("dict[str, Any]", data)
            if fields.get("arguments") and not fields.get("array"):
                fields = {**fields, "array": f"0-{len(fields['arguments']) - 1}"}
            if fields.get("name") in (None, ""):
                return {**fields, "name": name_of_command(fields.get("command"))}
            return fields
        return data  # pyright: ignore[reportUnknownVariableType]

    @model_validator(mode="after")
    def _one_command(self) -> JobSpec:
        if self.roles:
            return self
        if bool(self.command) == bool(self.shell.strip()):
            raise ValueError("give either a command or shell text" if self.command else "the command is empty")
        if self.command and not self.command[0]:
            raise ValueError("the command is empty: its first word has no characters")
        if sum(len(word.encode()) for word in self.command) > MAX_COMMAND_BYTES:
            raise ValueError("the command is longer than 1 MiB; put it into a file and run that")
        if len(self.shell.encode()) > MAX_SHELL_BYTES:
            raise ValueError("the shell text is longer than 32 MiB; put it into a file and run that")
        return self

    @model_validator(mode="after")
    def _options_that_can_stand(self) -> JobSpec:
        for name, value in self.sbatch.items():
            try:
                check_option(name, value)
            except ValueError as error:
                raise ValueError(f"sbatch.{error}") from None
        return self

    @model_validator(mode="after")
    def _arguments_of_a_command(self) -> JobSpec:
        if self.shell and self.resume and self.resume.args:
            raise ValueError("resume.args: they are added to a command; let shell text read a variable of resume.env")
        return self

    @model_validator(mode="after")
    def _outputs_below_results(self) -> JobSpec:
        for path in self.outputs:
            if not path.strip() or path.startswith("/") or ".." in path.split("/"):
                raise ValueError(f"outputs: {path!r} must be a path below the results directory; `.` is all of it")
        return self

    @model_validator(mode="after")
    def _inputs_to_fetch(self) -> JobSpec:
        for target in self.fetch:
            if not is_remote(self.inputs.get(target, "")):
                raise ValueError(f"fetch: {target} is no input from elsewhere")
        if self.fetch and self.array:
            raise ValueError(
                "fetch: the tasks of an array share their inputs; leave it out, and they are brought before"
            )
        return self

    @model_validator(mode="after")
    def _roles_and_nothing_beside(self) -> JobSpec:
        if not self.roles:
            return self
        check_roles(self.roles)
        wanted, nodes = self.resources, nodes_of(self.roles)
        if self.command or self.shell:
            raise ValueError("roles: each has a command of its own; take the job's away")
        if self.array or self.launch != "node" or wanted.gpus:
            raise ValueError("roles: they go together with no array, launch or total of GPUs; use gpus_per_node")
        if wanted.nodes not in (1, nodes):
            raise ValueError(f"roles: they have {nodes} nodes together, and {wanted.nodes} are asked for")
        if self.components and (self.nodelist or self.resources.licenses):
            raise ValueError("roles: with nodes of several kinds the job can give neither nodelist nor licenses")
        if doubled := [name for role in self.roles for name in role.env if name in self.secrets]:
            raise ValueError(f"secrets: {doubled[0]} is in the env of a role, too; take its value out of there")
        return self

    @model_validator(mode="after")
    def _tasks_of_the_launch(self) -> JobSpec:
        wanted = self.resources
        if self.launch != "gpu":
            return self
        if not (wanted.gpus or wanted.gpus_per_node):
            raise ValueError("launch: one task for each GPU needs GPUs; say how many with gpus or gpus_per_node")
        if wanted.tasks_per_node not in (1, wanted.gpus_per_node):
            raise ValueError("launch: one task for each GPU is what `gpu` means; leave tasks_per_node out")
        return self

    @model_validator(mode="after")
    def _secrets_apart(self) -> JobSpec:
        if doubled := [name for name in self.secrets if name in self.env]:
            raise ValueError(f"secrets: {doubled[0]} is in env, too; take its value out of there")
        if len(set(self.secrets)) < len(self.secrets):
            raise ValueError("secrets: a name stands there twice")
        return self

    @model_validator(mode="after")
    def _arguments_for_each_task(self) -> JobSpec:
        if self.arguments and len(self.arguments) != (count := len(parse_tasks(self.array or ""))):
            raise ValueError(f"arguments: there are {len(self.arguments)} for the {count} tasks of array {self.array}")
        if sum(len(word) for words in self.arguments for word in words) > MAX_ARGUMENTS:
            raise ValueError("arguments: they are longer than 32 MiB in all; put them into a file, and pass numbers")
        if any(len(word.encode()) > MAX_WORD for words in self.arguments for word in words):
            raise ValueError("arguments: one is longer than 128 KiB, which Linux takes for no argument")
        return self

    @model_validator(mode="after")
    def _corresponding_tasks(self) -> JobSpec:
        if self.array is None and any(each.kind == "aftercorr" for each in self.depends_on):
            raise ValueError("depends_on: aftercorr pairs the tasks of two arrays, and this job is no array")
        return self

    @classmethod
    def build(cls, **fields: Any) -> JobSpec:
        """A spec from plain values.

        Raises:
            SpecError: a value cannot be right; every wrong field is named with its reason.
        """
        return cls.read(fields)

    @classmethod
    def read(cls, values: Mapping[str, Any], place: Place = nowhere) -> JobSpec:
        """A spec from plain values that stand in a file.

        Args:
            values: the fields.
            place: tells of each field where it stands, for the error.

        Raises:
            SpecError: a value cannot be right; every wrong field is named with its reason and its place.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise spec_error(error, cls, place) from None
        except UnicodeEncodeError as error:  # pydantic cannot even name such a key
            raise SpecError(
                "the job cannot be run as it is described",
                why=f"{error.object!r} holds characters that cannot be written as UTF-8",
                fix="Correct the text; nothing was sent to the cluster.",
            ) from None

    @property
    def warning(self) -> tuple[str, int] | None:
        """The signal before the walltime ends, and how many seconds before; None for no warning."""
        if self.signal is None and self.grace is None and not (self.resume and self._has_room_for_a_warning):
            return None
        return self.signal or "TERM", self.grace or 60

    @property
    def _has_room_for_a_warning(self) -> bool:
        """Whether a job that can resume gets a signal that it did not ask for: not when that were half of its time."""
        return self.resources.time is None or self.resources.time >= 240

    @property
    def components(self) -> tuple[JobSpec, ...]:
        """Of a heterogeneous job, each component as a job of its own, in order; none of any other job."""
        if not any(role.apart for role in self.roles):
            return ()
        return tuple(self._component(role) for role in self.roles if role.on is None)

    def _component(self, role: Role) -> JobSpec:
        size = {"nodes": role.nodes, "tasks_per_node": tasks_of(role, self.roles), "time": self.resources.time}
        return self.model_copy(
            update={
                "roles": (),
                "command": role.command,
                "shell": role.shell,
                "resources": (role.resources or self.resources).model_copy(update=size),
                "partition": role.partition or self.partition,
                "constraint": role.constraint or self.constraint,
            }
        )

    @property
    def images(self) -> tuple[str, ...]:
        """Every image that the job starts, each once."""
        found = [role.image or self.image for role in self.roles] if self.roles else [self.image]
        return tuple(dict.fromkeys(image for image in found if image))

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        if self.roles:
            return "; ".join(f"{role.name}: {role.command_line}" for role in self.roles)
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
