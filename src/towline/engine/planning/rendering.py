"""The files of a job's directory, rendered. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from towline.config.profile import ClusterProfile
from towline.container.mounts import merge_mounts
from towline.engine.planning.beforehand import Prepared, Staged
from towline.engine.planning.containers import container_words, runtime_of
from towline.engine.planning.datasets import Placed, specs_file
from towline.engine.planning.dependencies import Settled
from towline.engine.staging import code as staging
from towline.launch.files import LaunchPlan, job_files, own_mounts
from towline.launch.roles import role_files
from towline.models.code import Code
from towline.models.errors import SpecError
from towline.models.ids import attempt_token
from towline.models.image import Image
from towline.models.parts import Mount, shared_path
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.batch import BatchJob, GpuRequest, render_batch


@dataclass(frozen=True)
class Draft:
    """A job whose every value is decided.

    Attributes:
        job_id: the id that the job will have.
        spec: the job, with defaults filled in.
        profile: the cluster's settings.
        facts: what the site said of itself.
        settled: what became of the jobs that it depends on.
        code: the working tree that it begins in.
        prepared: what files are made of its images.
        staged: what copies its data from elsewhere becomes.
        placed: the network's specification with its datasets; None without a network.
    """

    job_id: str
    spec: JobSpec
    profile: ClusterProfile
    facts: SiteFacts
    settled: Settled
    code: Code | None
    prepared: Prepared
    staged: Staged
    placed: Placed | None = None

    @property
    def located(self) -> dict[str, str]:
        """Target of each input → where the job finds it: without an image nothing is mounted."""
        inputs = self.staged.inputs_of(self.spec)
        return {target: target if self.spec.images else shared_path(uri) or uri for target, uri in inputs.items()}

    @property
    def directory(self) -> str:
        """The job's directory."""
        return f"{self.profile.root}/jobs/{self.job_id}"

    @property
    def token(self) -> str:
        """Slurm's job name of the first attempt."""
        return attempt_token(self.spec.name, self.job_id, 1)

    @property
    def coming(self) -> tuple[str, ...]:
        """The copies of data that are not there yet."""
        return tuple(dict.fromkeys(each.path for each in self.staged.inputs if not each.ready))

    @property
    def needed(self) -> tuple[str, ...]:
        """The paths that must be on the cluster before the job is sent; its code comes with it."""
        made = {*self.coming, *([self.code.place] if self.code else [])}
        named = (Image.parse(image).path for image in self.spec.images)
        ready = (image.path for image in self.prepared.images if image.ready)
        sender = [self.profile.staging_python] if self.spec.outputs and not self.profile.staging_image else []
        mounted = (mount.source for mount in self.spec.mounts)
        paths = dict.fromkeys(filter(None, [*ready, *named, *mounted, *sender]))
        return tuple(path for path in paths if path not in made and not is_below(path, (self.directory,)))


def draft_files(draft: Draft) -> dict[str, bytes]:
    """Every file of the job's directory: path below it → content.

    Raises:
        SpecError: a value cannot stand where the batch script needs it.
    """
    code = draft.code
    return {
        "job.json": _description(draft),
        "script/batch": _batch_script(draft).encode(),
        **_launch_files(draft),
        **_image_list(draft.prepared),
        **_input_list(draft.staged),
        **draft.staged.files,
        **specs_file(draft.spec, draft.placed, draft.located),
        **_needs((*draft.needed, *draft.coming, *([code.place] if code else []))),
        **(staging.job_files(code) if code else {}),
    }


def _launch_files(draft: Draft) -> dict[str, bytes]:
    spec, profile = draft.spec, draft.profile
    runtime = runtime_of(profile, draft.facts)
    mounts = merge_mounts(_shared_root(spec, profile), spec.mounts, own_mounts(draft.directory))

    def container(image: str | None, role: str = "") -> tuple[str, ...]:
        return container_words(spec, image, draft.prepared.started_from(image or ""), mounts, runtime, role)

    launch = LaunchPlan(
        spec=spec,
        job_id=draft.job_id,
        directory=draft.directory,
        container=container(spec.image),
        containers={role.name: container(role.image or spec.image, role.name) for role in spec.roles},
        convention=profile.preset,
        mpi=profile.mpi or "",
        whole_environment=profile.export == "all",
        message_timeout=draft.facts.message_timeout,
        setup=profile.setup,
        tao_root=profile.root if profile.preset else "",
        inputs=draft.located,
    )
    return role_files(launch) if spec.roles else job_files(launch)


def is_below(path: str, directories: Sequence[str]) -> bool:
    """Whether a path is one of these directories, or in one."""
    return any(f"{path}/".startswith(f"{directory.rstrip('/')}/") for directory in directories)


def _image_list(prepared: Prepared) -> dict[str, bytes]:
    """Which files of the cache the job needs: `images` looks there for what is in use."""
    lines = [f"{image.reference} {image.path} {image.place}".rstrip() + "\n" for image in prepared.images]
    return {"script/images": "".join(lines).encode()} if lines else {}


def _input_list(staged: Staged) -> dict[str, bytes]:
    """Which copies of data the job needs."""
    lines = dict.fromkeys(f"{each.uri} {each.path}\n" for each in staged.inputs if each.most is None)
    return {"script/inputs": "".join(lines).encode()} if lines else {}


def _needs(paths: Sequence[str]) -> dict[str, bytes]:
    """The paths that the job needs: `gc` looks there for what is in use."""
    return {"script/needs": "".join(f"{path}\n" for path in dict.fromkeys(paths)).encode()} if paths else {}


def _shared_root(spec: JobSpec, profile: ClusterProfile) -> tuple[Mount, ...]:
    """The root at its own path, where the preset's variables name directories below it and nothing else shows it."""
    seen = [mount.target for mount in spec.mounts if mount.source == mount.target and mount.mode == "rw"]
    if not profile.preset or is_below(profile.root, seen):
        return ()
    return (Mount(source=profile.root, target=profile.root),)


def _description(draft: Draft) -> bytes:
    about = {
        "version": 1,
        "id": draft.job_id,
        "token": draft.token,
        "cluster": draft.profile.name,
        "spec": draft.spec.model_dump(mode="json"),
    }
    return json.dumps(about, indent=1, sort_keys=True).encode() + b"\n"


def _batch_script(draft: Draft) -> str:
    jobs = [_batch_job(draft, each) for each in draft.spec.components or (draft.spec,)]
    try:
        return render_batch(replace(jobs[0], others=tuple(jobs[1:])))
    except ValueError as error:
        raise SpecError(
            "the job's batch script cannot be written",
            why=str(error),
            fix="Correct the value and run the command again; nothing was sent to the cluster.",
        ) from None


def _batch_job(draft: Draft, spec: JobSpec) -> BatchJob:
    """The job, or a component of it."""
    profile, wanted = draft.profile, spec.resources
    style: GpuRequest = "gres" if profile.gpu_request == "gres-typed" else profile.gpu_request
    return BatchJob(
        directory=draft.directory,
        job_id=draft.job_id,
        token=draft.token,
        command_line=draft.spec.command_line,
        array=spec.array or "",
        nodes=wanted.nodes,
        tasks_per_node=wanted.tasks_per_node,
        gpus_per_node=wanted.gpus_per_node,
        gpu_type=wanted.gpu_type or "",
        gpu_request=style,
        cpus_per_task=wanted.cpus_per_task,
        memory=wanted.memory,
        memory_per_cpu=wanted.memory_per_cpu,
        time=wanted.time,
        exclusive=wanted.exclusive,
        licenses=wanted.licenses,
        partition=spec.partition,
        account=spec.account or "",
        qos=spec.qos or "",
        reservation=spec.reservation or "",
        constraint=spec.constraint or "",
        nodelist=spec.nodelist or "",
        exclude=spec.exclude or "",
        comment=spec.comment,
        begin=spec.begin or "",
        deadline=spec.deadline or "",
        signal=spec.warning,
        mail_user=(spec.mail.user or "") if spec.mail else "",
        mail_types=spec.mail.types if spec.mail else (),
        requeue=spec.restart == "on-fault",
        export_all=profile.export == "all",
        options=spec.sbatch,
        dependency=draft.settled.terms,
    )
