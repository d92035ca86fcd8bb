"""From a spec to a plan: defaults filled in, everything checked, every file rendered. Pure: nothing is sent here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from towline.config.profile import ClusterProfile
from towline.container.mounts import merge_mounts
from towline.engine.planning.checks import check_spec, unseen_paths
from towline.engine.planning.containers import check_image, container_words, runtime_of
from towline.engine.planning.defaults import fill_in, with_preset
from towline.engine.planning.dependencies import NO_DEPENDENCIES, Settled
from towline.engine.staging import code as staging
from towline.launch.files import LaunchPlan, job_files, own_mounts
from towline.launch.roles import role_files
from towline.models.code import Code
from towline.models.errors import PlanRefused, SpecError
from towline.models.ids import attempt_token
from towline.models.image import Image
from towline.models.parts import Mount, shared_path
from towline.models.plan import Check, Plan, PlannedImage, PlannedInput, Verdict
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.batch import BatchJob, GpuRequest, render_batch
from towline.slurm.commands import sbatch


@dataclass(frozen=True)
class Prepared:
    """A spec's images of registries, as far as files are made of them.

    Attributes:
        images: those.
        checks: one for each image, files too; empty when nothing is made.
        notes: what was decided for the user, in sentences.
    """

    images: tuple[PlannedImage, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    def started_from(self, reference: str) -> Image:
        """The image that a container starts from."""
        path = next((each.path for each in self.images if each.reference == reference), "")
        return Image(path=path) if path or not reference else Image.parse(reference)


@dataclass(frozen=True)
class Staged:
    """A spec's data from elsewhere, with the copies that it gets.

    Attributes:
        inputs: those.
        checks: about each of them.
        notes: what was decided for the user, in sentences.
        files: path below the job directory → content, for those that the job brings itself.
    """

    inputs: tuple[PlannedInput, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)

    def with_checks(self, checks: Sequence[Check]) -> Staged:
        """The same with further checks."""
        return replace(self, checks=(*self.checks, *checks))

    def inputs_of(self, spec: JobSpec) -> dict[str, str]:
        """The spec's inputs, those from elsewhere by the path of their copy."""
        copies = {each.target: each.path for each in self.inputs}
        return {target: copies.get(target, uri) for target, uri in spec.inputs.items()}


AS_IT_IS = Staged()
"""There is no data from elsewhere."""
AS_THEY_ARE = Prepared()
"""Every image is started as it is named."""


def make_plan(
    spec: JobSpec,
    profile: ClusterProfile,
    facts: SiteFacts,
    job_id: str,
    settled: Settled = NO_DEPENDENCIES,
    code: Code | None = None,
    prepared: Prepared = AS_THEY_ARE,
    staged: Staged = AS_IT_IS,
) -> Plan:
    """What a submission of the spec on that cluster will do.

    Args:
        spec: the job.
        profile: the cluster's settings.
        facts: what the site said of itself.
        job_id: the id that the job will have.
        settled: what became of the jobs that it depends on.
        code: the working tree that the spec names.
        prepared: what files are made of its images.
        staged: what copies its data from elsewhere becomes.

    Raises:
        SpecError: a value cannot stand where the batch script needs it.
    """
    facts = with_preset(facts, profile)
    filled = fill_in(spec.model_copy(update={"inputs": staged.inputs_of(spec)}), profile, facts)
    spec = filled.spec.model_copy(update={"depends_on": settled.wanted, "inputs": spec.inputs})
    directory = f"{profile.root}/jobs/{job_id}"
    token = attempt_token(spec.name, job_id, 1)
    coming = {each.path for each in staged.inputs if not each.ready}
    needed = (
        *(image.path for image in prepared.images if image.ready),
        *(path for path in _needed_paths(spec) if path not in coming),
    )
    spec = _with_code(spec, code) if code else spec
    needed = tuple(path for path in needed if not _is_below(path, (directory,)))  # made by the submission itself
    required = tuple(path for path in needed if not _is_below(path, profile.unseen))
    image = check_image(spec, profile, facts)
    images = (image,) if image.verdict is Verdict.FAILS or not prepared.checks else prepared.checks
    checks = (*staged.checks, *images, *check_spec(spec, facts, required))
    unseen = unseen_paths([path for path in needed if path not in required])
    return Plan(
        job_id=job_id,
        token=token,
        spec=spec,
        directory=directory,
        files={
            **_files(spec, profile, job_id, directory, token, settled.terms, prepared, facts, staged.inputs_of(spec)),
            **_image_list(prepared),
            **_input_list(staged),
            **staged.files,
            **_needs((*needed, *coming, *([code.place] if code else []))),
            **(staging.job_files(code) if code else {}),
        },
        checks=(*checks, *unseen, *settled.checks),
        required_paths=required,
        sbatch=sbatch(f"{directory}/script/batch"),
        notes=(*filled.notes, *prepared.notes, *staged.notes, *(staging.notes(code) if code else ())),
        facts_asked=facts.asked,
        code=code,
        images=prepared.images,
        inputs=staged.inputs,
        waits_for=settled.terms,
    )


def _with_code(spec: JobSpec, code: Code) -> JobSpec:
    """The spec with its code as working directory: a mount for a container, the snapshot itself without one."""
    if spec.workdir and not spec.image:
        raise SpecError(
            f"the job cannot begin both in its code and in {spec.workdir}",
            why="Without an image nothing can be mounted: the code is the working directory.",
            fix="Leave workdir out, or give an image.",
        )
    place = spec.workdir or (staging.MOUNT if spec.image else code.place)
    own = (Mount(source=code.place, target=place, mode="ro"),) if spec.images else ()
    return spec.model_copy(update={"mounts": merge_mounts(spec.mounts, own), "workdir": place})


def check_plan(plan: Plan) -> None:
    """Return when no check fails.

    Raises:
        PlanRefused: with every failure and its remedy.
    """
    if plan.failures:
        raise PlanRefused(
            "the job cannot run on this cluster as it is described",
            why="\n".join(f"{check.name}: {check.evidence}" for check in plan.failures),
            fix="\n".join(dict.fromkeys(check.fix for check in plan.failures if check.fix)),
        )


def _needed_paths(spec: JobSpec) -> tuple[str, ...]:
    images = [Image.parse(image).path for image in spec.images]
    return tuple(dict.fromkeys([*filter(None, images), *(mount.source for mount in spec.mounts)]))


def _is_below(path: str, directories: Sequence[str]) -> bool:
    return any(f"{path}/".startswith(f"{directory.rstrip('/')}/") for directory in directories)


def _files(
    spec: JobSpec,
    profile: ClusterProfile,
    job_id: str,
    directory: str,
    token: str,
    dependency: str,
    prepared: Prepared,
    facts: SiteFacts,
    inputs: Mapping[str, str],
) -> dict[str, bytes]:
    runtime = runtime_of(profile, facts)
    mounts = merge_mounts(_shared_root(spec, profile), spec.mounts, own_mounts(directory))

    def container(image: str | None, role: str = "") -> tuple[str, ...]:
        return container_words(spec, image, prepared.started_from(image or ""), mounts, runtime, role)

    launch = LaunchPlan(
        spec=spec,
        job_id=job_id,
        directory=directory,
        container=container(spec.image),
        containers={role.name: container(role.image or spec.image, role.name) for role in spec.roles},
        convention=profile.preset,
        mpi=profile.mpi or "",
        whole_environment=profile.export == "all",
        message_timeout=facts.message_timeout,
        setup=profile.setup,
        tao_root=profile.root if profile.preset else "",
        inputs={target: target if spec.images else shared_path(uri) or uri for target, uri in inputs.items()},
    )
    return {
        "job.json": _description(spec, job_id, token, profile.name),
        "script/batch": _batch_script(spec, profile, job_id, directory, token, dependency).encode(),
        **(role_files(launch) if spec.roles else job_files(launch)),
    }


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
    if not profile.preset or _is_below(profile.root, seen):
        return ()
    return (Mount(source=profile.root, target=profile.root),)


def _description(spec: JobSpec, job_id: str, token: str, cluster: str) -> bytes:
    about = {"version": 1, "id": job_id, "token": token, "cluster": cluster, "spec": spec.model_dump(mode="json")}
    return json.dumps(about, indent=1, sort_keys=True).encode() + b"\n"


def _batch_script(
    spec: JobSpec, profile: ClusterProfile, job_id: str, directory: str, token: str, dependency: str
) -> str:
    jobs = [
        _batch_job(each, profile, job_id, directory, token, dependency, spec.command_line)
        for each in spec.components or (spec,)
    ]
    try:
        return render_batch(replace(jobs[0], others=tuple(jobs[1:])))
    except ValueError as error:
        raise SpecError(
            "the job's batch script cannot be written",
            why=str(error),
            fix="Correct the value and run the command again; nothing was sent to the cluster.",
        ) from None


def _batch_job(
    spec: JobSpec, profile: ClusterProfile, job_id: str, directory: str, token: str, dependency: str, command_line: str
) -> BatchJob:
    wanted = spec.resources
    style: GpuRequest = "gres" if profile.gpu_request == "gres-typed" else profile.gpu_request
    return BatchJob(
        directory=directory,
        job_id=job_id,
        token=token,
        command_line=command_line,
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
        dependency=dependency,
    )
