"""What a spec leaves open, from the profile, the preset and the site. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from towline.config import tao
from towline.config.profile import ClusterProfile
from towline.container.mounts import merge_mounts
from towline.engine.planning.checks import asked_partitions
from towline.engine.planning.sizing import Rules, Size, size
from towline.engine.planning.standing import resource_bounds, time_bounds
from towline.models.image import Image
from towline.models.parts import Mail, Mount, shared_path
from towline.models.resources import Resources
from towline.models.roles import nodes_of
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.models.values import MAX_WALLTIME

_CPU_OPTIONS = frozenset(
    {"core-spec", "cores-per-socket", "extra-node-info", "hint", "mincpus", "thread-spec", "threads-per-core"}
)
"""Options of sbatch that change which CPUs count: a share of all CPUs could then not be had."""


@dataclass(frozen=True)
class Filled:
    """A spec with nothing left open, as far as it can be known.

    Attributes:
        spec: the spec.
        notes: what was decided for the user, in sentences.
    """

    spec: JobSpec
    notes: tuple[str, ...] = ()


def with_preset(facts: SiteFacts, profile: ClusterProfile) -> SiteFacts:
    """The facts with what a preset knows better: TAO's packaged partitions run jobs of 4 hours at most."""
    if profile.preset != tao.NAME:
        return facts
    most = tao.PACKAGED_HOURS * 3600
    return replace(
        facts,
        partitions=tuple(
            replace(part, max_time=min(part.max_time or most, most)) if part.name in tao.PACKAGED_PARTITIONS else part
            for part in facts.partitions
        ),
    )


def fill_in(spec: JobSpec, profile: ClusterProfile, facts: SiteFacts) -> Filled:
    """The spec with what it leaves open taken from the profile and the site; its own mounts come on top."""
    spec = spec.model_copy(
        update={
            "image": _image(spec.image or (None if profile.runtime == "none" else profile.image), profile.root),
            "roles": tuple(role.model_copy(update={"image": _image(role.image, profile.root)}) for role in spec.roles),
            "partition": spec.partition or profile.partition,
            "account": spec.account or profile.account,
            "qos": spec.qos or profile.qos,
            "restart": spec.restart or profile.restart,
            "log_per": spec.log_per or profile.log_per,
            "status_decides": profile.preset == tao.NAME if spec.status_decides is None else spec.status_decides,
            "mounts": merge_mounts(profile.mounts, _inputs(spec), spec.mounts),
            "mail": spec.mail or (Mail(user=profile.mail_user, types=("ALL",)) if profile.mail_user else None),
            "comment": join_comments(profile.comment, spec.comment),
        }
    )
    if spec.components:
        return _fill_components(spec, profile, facts)
    asked = asked_partitions(spec, facts)
    wanted = _of_roles(spec)
    sized = _sized(wanted, spec, profile, facts, asked)
    time, note = _walltime(spec, profile, facts, asked)
    spec = spec.model_copy(update={"resources": sized.resources.model_copy(update={"time": time})})
    return Filled(spec, (*sized.notes, *([note] if note else [])))


def _fill_components(spec: JobSpec, profile: ClusterProfile, facts: SiteFacts) -> Filled:
    """A heterogeneous job: what each component needs is decided for its own partitions, one walltime for all."""
    apart = [role for role in spec.roles if role.on is None]
    parts = [(each, asked_partitions(each, facts)) for each in spec.components]
    sized = [_sized(each.resources, each, profile, facts, asked) for each, asked in parts]
    times = [_walltime(each, profile, facts, asked) for each, asked in parts]
    time, note = min(times, key=lambda each: each[0] or MAX_WALLTIME)
    # These stand in the role itself and in the job.
    plain = {"nodes": 1, "tasks_per_node": 1, "time": None}
    own = {role.name: each.resources.model_copy(update=plain) for role, each in zip(apart, sized, strict=True)}
    roles = tuple(role.model_copy(update={"resources": own.get(role.name)}) for role in spec.roles)
    resources = spec.resources.model_copy(update={"time": time, "nodes": nodes_of(spec.roles)})
    notes = [each for wanted in sized for each in wanted.notes]
    filled = spec.model_copy(update={"roles": roles, "resources": resources})
    return Filled(filled, tuple(dict.fromkeys([*notes, *([note] if note else [])])))


def _sized(wanted: Resources, spec: JobSpec, profile: ClusterProfile, facts: SiteFacts, asked: list[Partition]) -> Size:
    kind = wanted.gpu_type or _site_gpu_type(wanted, profile, asked)
    rules = _rules(profile, spec, _cpu_limit(spec, facts, asked))
    return size(wanted.model_copy(update={"gpu_type": kind}), asked, rules)


def _of_roles(spec: JobSpec) -> Resources:
    """With roles, the nodes of all, and room for the one with most tasks on a node: roles share what is there."""
    if not spec.roles:
        return spec.resources
    tasks = max(role.tasks_per_node for role in spec.roles)
    return spec.resources.model_copy(update={"nodes": nodes_of(spec.roles), "tasks_per_node": tasks})


def _cpu_limit(spec: JobSpec, facts: SiteFacts, asked: list[Partition]) -> int | None:
    """The most CPUs that the job may have in any of the partitions."""
    bounds = [bound for part in asked if (bound := resource_bounds(spec, part, facts).get("cpu"))]
    return min((bound.most for bound in bounds), default=None)


def _image(text: str | None, root: str) -> str | None:
    """A path below the root in full; everything else as it was written."""
    image = Image.parse(text) if text else None
    return image.against(root).path if image and image.is_file else text


def _rules(profile: ClusterProfile, spec: JobSpec, cpus_in_all: int | None) -> Rules:
    return Rules(
        cpus_per_gpu=profile.cpus_per_gpu,
        cpus_in_all=cpus_in_all,
        gpus_per_node=profile.gpus_per_node,
        cpus_per_task=profile.cpus_per_task,
        max_cpus_per_task=profile.max_cpus_per_task,
        tao=profile.preset == tao.NAME,
        shares=not _CPU_OPTIONS & spec.sbatch.keys(),
        task_per_gpu=spec.launch == "gpu",
    )


def _inputs(spec: JobSpec) -> tuple[Mount, ...]:
    """Inputs that lie on the shared file system are mounted, for reading only."""
    paths = ((target, shared_path(uri)) for target, uri in spec.inputs.items())
    return tuple(Mount(source=path, target=target, mode="ro") for target, path in paths if path)


def _site_gpu_type(wanted: Resources, profile: ClusterProfile, asked: list[Partition]) -> str | None:
    """The type that must be named where a site refuses requests without one and has only one."""
    if profile.gpu_request != "gres-typed" or not (wanted.gpus or wanted.gpus_per_node):
        return None
    types = {kind for part in asked for kind in part.gpu_types}
    return types.pop() if len(types) == 1 else None


def _walltime(
    spec: JobSpec, profile: ClusterProfile, facts: SiteFacts, asked: list[Partition]
) -> tuple[int | None, str]:
    """The walltime in seconds, and a sentence when it is none of the user's or the profile's.

    It is always written: without one Slurm takes the partition's default, which may be no limit at all.
    """
    if own := spec.resources.time or profile.time:
        return own, ""
    defaults = [(time, part.name) for part in asked if (time := part.default_time or part.max_time)]
    if not defaults:
        return None, ""
    time, name = min(defaults)
    bounds = [bound.most for part in asked for bound in time_bounds(spec, part, facts)]
    return min([time, *bounds]), f"the walltime is the default of partition {name}"


def join_comments(site: str, own: str) -> str:
    """The site's comment and the user's in one.

    Where both are JSON objects, as policies of sites are, they become one, the user's keys winning; text beside a
    policy goes into it under `comment`, so that it can still be read. Other texts are joined with a blank.
    """
    if not site or not own:
        return site or own
    ours, theirs = _json_object(site), _json_object(own)
    if ours is None and theirs is None:
        return f"{site} {own}"
    merged = _merged(
        ours if ours is not None else {"comment": site}, theirs if theirs is not None else {"comment": own}
    )
    return json.dumps(merged, ensure_ascii=False, separators=(",", ":"))


def _json_object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else None
    except ValueError:
        return None
    return cast("dict[str, object]", found) if isinstance(found, dict) else None


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(under, dict) and isinstance(value, dict)
        merged[key] = _merged(cast("dict[str, object]", under), cast("dict[str, object]", value)) if both else value
    return merged
