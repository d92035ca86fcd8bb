"""The files that a job carries into its allocation, below `script/` of the job directory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources

from towline.launch import conventions
from towline.launch.diagnosis.rules import job_rules, search_script
from towline.launch.healing import resume_file, settings_file
from towline.launch.quoting import quote, quote_words
from towline.launch.rendezvous import TAO_PORT, Convention, Place
from towline.models.array import parse_tasks
from towline.models.secrets import Secret
from towline.models.spec import JobSpec, LogPer, Mount
from towline.slurm.scripts import part, script

LOG_DIR = "\1"
"""Stands in a step's words for the directory of the attempt, which only the supervisor knows."""
LOG_PLACES: dict[LogPer, str] = {"rank": "ranks", "node": "nodes"}
"""Where below the attempt's, the task's or the role's directory the files of ranks or nodes are: `<number>-<node>.out`
and `.err`, with the rank or the number of the node in the job."""

SECRETS = "secrets"
"""The file of the job directory that has the values of the secrets, as long as the job may need them."""
NAMES_OF_SECRETS = "script/secrets"
"""The file that has their names; a task that finds it must find the values, too."""

MARK = "/.towline"
"""Where the container sees `script/`. The path exists nowhere else, so a task that does not see it runs on the bare
node: Pyxis set `optional` in plugstack.conf does that when a container could not start."""


@dataclass(frozen=True)
class LaunchPlan:
    """What is decided about the launch of one job.

    Attributes:
        spec: the spec with defaults filled in.
        job_id: Towline's id.
        directory: absolute path of the job directory on the cluster.
        container: the `srun` options that put a task into its image (`container.pyxis.srun_options`, with
            `own_mounts` among the mounts); empty runs the command on the node itself.
        containers: the same for each role.
        convention: whose variables the tasks get beside the general ones.
        mpi: how `srun` sets up MPI where the spec asks for that, as `srun --mpi=list` names it; empty for the
            site's default.
        whole_environment: whether the batch script's environment reaches the tasks as it is; else only what Slurm,
            the site and the spec say, see `scripts/supervisor.sh`.
        message_timeout: Slurm's MessageTimeout in seconds, which tells how long a submission may take.
        setup: the profile's shell line, for a submission from a node.
        inputs: path in the container of an input → where the job's command finds it.
        tao_root: Towline's directory on the cluster, for a job that gets what the preset `tao` adds; else empty.
    """

    spec: JobSpec
    job_id: str
    directory: str
    container: tuple[str, ...] = ()
    containers: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    convention: Convention = ""
    mpi: str = ""
    whole_environment: bool = False
    message_timeout: int = 10
    setup: str = ""
    tao_root: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def results(self) -> str:
        """The directory that the job writes its results to."""
        return f"{self.directory}/results"


def own_mounts(directory: str) -> tuple[Mount, ...]:
    """The mounts that the launch itself needs: the job directory at its own path, and the mark.

    They come after a profile's and a spec's mounts, see `container.mounts.merge_mounts`.
    """
    return (
        Mount(source=directory, target=directory),
        Mount(source=f"{directory}/script", target=MARK),
    )


def job_files(launch: LaunchPlan) -> dict[str, bytes]:
    """Path below the job directory → content of every file that the launch needs; all need mode 0600 only.

    The values of secrets are not among them: they come beside, see `secrets_file`.
    """
    return {
        **public_files(launch),
        **({"script/arguments": arguments_file(launch.spec).encode()} if launch.spec.arguments else {}),
        "script/entrypoint": entrypoint(launch.spec, by_bash=bool(launch.tao_root)).encode(),
        "script/env": environment_file(launch).encode(),
        "script/step": step_file(launch).encode(),
    }


def public_files(launch: LaunchPlan) -> dict[str, bytes]:
    """The files that are there once, however many commands a job has."""
    names = launch.spec.secrets
    resume = resume_file(launch.spec)
    settings = settings_file(launch.spec, launch.job_id, launch.directory, message_timeout=launch.message_timeout)
    return {
        **({NAMES_OF_SECRETS: "".join(f"{name}\n" for name in names).encode()} if names else {}),
        **(layout_files(launch) if launch.tao_root else {}),
        "script/supervisor": packaged("supervisor.sh"),
        "script/prelude": packaged("prelude.sh"),
        "script/rules": job_rules(),
        "script/search.sh": search_script(),
        "script/settings": settings.encode(),
        "script/judge.sh": packaged("judge.sh"),
        "script/heal.sh": packaged("heal.sh"),
        "script/past.sh": part("past.sh").encode(),
        "script/nodes.sh": packaged("nodes.sh"),
        "script/hang.sh": packaged("hang.sh"),
        "script/fetch.sh": packaged("fetch.sh"),
        "script/check": packaged("check.sh"),
        **({f"script/{name}": packaged(f"{name}.sh") for name in ("use", "stacks")} if launch.spec.hang_after else {}),
        "script/submit": script("submit").encode(),
        **({"script/setup": f"{launch.setup}\n".encode()} if launch.setup.strip() else {}),
        **({"script/resume": resume.encode()} if resume else {}),
    }


def layout_files(launch: LaunchPlan) -> dict[str, bytes]:
    """The files that the preset's layout has beside the scripts; see `towline.launch.conventions`."""
    return conventions.layout_files(launch.spec, launch.job_id, public_environment(launch))


def entrypoint(spec: JobSpec, *, by_bash: bool = False) -> str:
    """The user's command as a sh script; shell text stays as it was given, and finds a task's arguments in `$@`.

    Args:
        spec: the job.
        by_bash: whether shell text is read by bash where the image has one.
    """
    head = conventions.BY_BASH if by_bash and spec.shell else ""
    own = '. "$TOWLINE_JOB_DIR/script/arguments"\n' if spec.arguments else ""
    own += '. "$TOWLINE_JOB_DIR/script/resume"\n' if resume_file(spec) else ""
    body = spec.shell or f"exec {quote_words(spec.command)}" + (' "$@"' if own else "")
    return f"#!/bin/sh\n{head}{own}{body.removesuffix(chr(10))}\n"


def arguments_file(spec: JobSpec) -> str:
    """Every task's own arguments as sh text that sets the positional parameters of the task that reads it."""
    numbers = sorted(parse_tasks(spec.array or ""))
    cases = [f"{task}) set -- {quote_words(own)} ;;\n" for task, own in zip(numbers, spec.arguments, strict=True)]
    return f"case $SLURM_ARRAY_TASK_ID in\n{''.join(cases)}esac\n"


def public_environment(launch: LaunchPlan) -> dict[str, str]:
    """The variables that are the same in every task and hold no secret; a spec's own value wins over Towline's."""
    network = launch.spec.network
    return {
        "TOWLINE_JOB_ID": launch.job_id,
        "TOWLINE_JOB_NAME": launch.spec.name,
        "TOWLINE_RESULTS_DIR": launch.results,
        "PYTHONUNBUFFERED": "1",
        **({"PYTHONFAULTHANDLER": "1"} if launch.spec.hang_after else {}),
        **{input_variable(target): place for target, place in launch.inputs.items()},
        **({"TOWLINE_SPECS": f"{launch.directory}/script/specs{network.suffix}"} if network else {}),
        **(conventions.as_paths(launch.spec.env) if launch.tao_root else launch.spec.env),
    }


def input_variable(target: str) -> str:
    """The variable that tells where an input is: `TOWLINE_INPUT_DATA_TRAIN` for `/data/train`."""
    return "TOWLINE_INPUT_" + re.sub(r"[^A-Za-z0-9]+", "_", target).strip("_").upper()


def environment_file(launch: LaunchPlan) -> str:
    """What each task's environment gets, as sh text; the spec's own values come last and so win."""
    wanted = launch.spec.resources
    place = Place(wanted.nodes, wanted.tasks_per_node, wanted.gpus_per_node, launch.convention)
    own = export_lines(public_environment(launch))
    if launch.tao_root:
        before = conventions.before_lines(launch.tao_root, launch.job_id)
        own = f"{before}{own}{conventions.after_lines(launch.tao_root)}"
    return place.lines() + own


def export_lines(values: Mapping[str, str]) -> str:
    """`export NAME='value'` lines, which a sh reads back byte for byte."""
    return "".join(f"export {name}={quote(value)}\n" for name, value in values.items())


def secrets_file(values: Mapping[str, Secret]) -> bytes:
    """The file `secrets` of the job directory, which the prelude reads inside the container.

    It has mode 0600 and never stands among a plan's files.
    """
    return b"".join(
        b"export %s='%s'\n" % (name.encode(), value.reveal().replace(b"'", b"'\\''")) for name, value in values.items()
    )


def step_command(launch: LaunchPlan) -> tuple[str, ...]:
    """The `srun` that starts every task of the job.

    It asks for no GPUs: a step without such options has all GPUs of its job, and an untyped request in a typed
    allocation is refused. Counts are given in full, for srun would take others from the batch script's
    environment; since 22.05 it no longer takes SLURM_CPUS_PER_TASK from there (srun(1)). `--wait=0` keeps a
    site's WaitTime from killing ranks that end later than the first.
    """
    wanted = launch.spec.resources
    cpus = () if wanted.cpus_per_task is None else (f"--cpus-per-task={wanted.cpus_per_task}",)
    return (
        "srun",
        f"--nodes={wanted.nodes}",
        f"--ntasks={wanted.nodes * wanted.tasks_per_node}",
        f"--ntasks-per-node={wanted.tasks_per_node}",
        *cpus,
        *_mpi(launch),
        *_streams(launch.spec.log_per or "job"),
        "--kill-on-bad-exit=1",
        "--wait=0",
        *(launch.container or _on_the_node(launch.spec)),
        "/bin/sh",
        f"{launch.directory}/script/prelude",
        "container" if launch.container else "node",
    )


def _streams(log_per: LogPer) -> tuple[str, ...]:
    """Where the tasks' output goes: through `srun` into the batch script's files, or into files of their own.

    For a name with the task or the node in it each node opens the files itself (srun(1), filename pattern), so that
    hundreds of ranks do not write through one process. The words are for `words_of`.
    """
    if log_per == "job":
        return ()
    pattern = f"{LOG_DIR}/{LOG_PLACES[log_per]}/{_PATTERNS[log_per]}"
    return (f"--output={pattern}.out", f"--error={pattern}.err", "--open-mode=append")


_PATTERNS: dict[LogPer, str] = {"rank": "%t-%N", "node": "%n-%N"}


def _mpi(launch: LaunchPlan) -> tuple[str, ...]:
    if launch.spec.launch != "mpi":
        return ()
    return (f"--mpi={launch.mpi}",) if launch.mpi else ()


def _on_the_node(spec: JobSpec) -> tuple[str, ...]:
    return (f"--chdir={spec.workdir}",) if spec.workdir else ()


def step_file(launch: LaunchPlan) -> str:
    """The step as sh text for the supervisor: sets its variables `tl_step_…` and the positional parameters."""
    wanted = launch.spec.resources
    tasks = f"tl_step_tasks={wanted.nodes * wanted.tasks_per_node}\n"
    return f"{tasks}{step_settings(launch)}set -- \\\n    {words_of(step_command(launch))}\n"


def step_settings(launch: LaunchPlan) -> str:
    """What the supervisor must know of every step."""
    place = LOG_PLACES.get(launch.spec.log_per or "job")
    return (
        f"tl_step_port={TAO_PORT if launch.convention == 'tao' else ''}\n"
        f"tl_step_environment={'whole' if launch.whole_environment else 'chosen'}\n"
        f"{f'tl_step_logs={place}{chr(10)}' if place else ''}"
    )


def words_of(command: Iterable[str]) -> str:
    """The words quoted, one a line; `LOG_DIR` becomes what the supervisor has in `tl_log_dir`.

    A container's name becomes one that no other job has: sites may keep named containers beyond a job
    (`container_scope=global` in plugstack.conf), and the next job would find what the last one left there.
    """
    return " \\\n    ".join(_word(word) for word in command)


def _word(text: str) -> str:
    if text.startswith("--container-name="):
        return f'{quote(text)}-"$SLURM_JOB_ID"'
    before, place, behind = text.partition(LOG_DIR)
    return f'{quote(before)}"$tl_log_dir"{quote(behind)}' if place else quote(text)


def packaged(name: str) -> bytes:
    """A script of this package."""
    return (resources.files("towline.launch") / "scripts" / name).read_bytes()
