"""What must hold before a job is sent: the spec against the facts of the site. Pure: values in, checks out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from towline.engine.redaction import looks_secret
from towline.models.image import Image
from towline.models.plan import Check, Verdict
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.models.values import format_walltime

_Limit = Callable[[JobSpec, Partition], "str | None"]


def check_spec(spec: JobSpec, facts: SiteFacts, required_paths: Sequence[str]) -> tuple[Check, ...]:
    """Every check of a spec whose defaults are filled in, in the order that a person would look."""
    names = spec.partition or _site_default(facts)
    found = asked_partitions(spec, facts)
    checks = [_image(spec), _partition(spec, names, facts)]
    if found and len(found) == len(names):
        checks += [_limit(name, limit, spec, found, facts) for name, limit in _LIMITS.items()]
    if told := _tokens(spec):
        checks.append(told)
    if required_paths:
        checks.append(Check("paths", Verdict.ON_SUBMIT, "on the cluster there must be " + ", ".join(required_paths)))
    return tuple(checks)


def asked_partitions(spec: JobSpec, facts: SiteFacts, otherwise: Sequence[str] = ()) -> list[Partition]:
    """The partitions that the job may go to, as far as the site has them.

    Args:
        spec: the job.
        facts: what the site said of itself.
        otherwise: the partitions of jobs that name none; the site's default when this is empty too.
    """
    names = spec.partition or otherwise or _site_default(facts)
    return [part for name in names if (part := facts.partition(name))]


def _site_default(facts: SiteFacts) -> tuple[str, ...]:
    return (facts.default_partition.name,) if facts.default_partition else ()


def _image(spec: JobSpec) -> Check:
    if spec.image is None:
        return Check(
            "image",
            Verdict.FAILS,
            "the job names no image and the cluster's profile has none",
            "Give one with --image, or set `image` in the profile.",
        )
    image = Image.parse(spec.image)
    if image.is_file:
        return Check("image", Verdict.ON_SUBMIT, f"{spec.image} must be a squashfs image that you can read")
    return Check("image", Verdict.OK, f"{spec.image} is pulled from its registry when the job starts")


def _tokens(spec: JobSpec) -> Check | None:
    """A token in plain sight: the job's files on the shared disk and lists would show it."""
    places = [f"the variable {name}" for name, value in spec.env.items() if looks_secret(value)]
    places += ["the command"] if looks_secret("\n".join([*spec.command, spec.shell])) else []
    if not places:
        return None
    return Check(
        "secrets",
        Verdict.FAILS,
        f"what looks like a token or a private key stands in {' and in '.join(places)}, which is written down for all",
        "Give it with --secret NAME, and let the command read the variable NAME itself (docs/secrets.md).",
    )


def _partition(spec: JobSpec, names: Sequence[str], facts: SiteFacts) -> Check:
    there_are = ", ".join(part.name + ("" if part.available else " (closed)") for part in facts.partitions)
    if not names:
        return Check(
            "partition",
            Verdict.FAILS,
            f"the job names no partition and {facts.cluster} has no default one",
            f"Choose one with --partition; there are: {there_are}.",
        )
    unknown = [name for name in names if facts.partition(name) is None]
    closed = [name for name in names if (part := facts.partition(name)) and not part.available]
    if unknown or closed:
        what = (
            f"{facts.cluster} has no partition {unknown[0]}" if unknown else f"partition {closed[0]} takes no jobs now"
        )
        return Check("partition", Verdict.FAILS, what, f"Choose another with --partition; there are: {there_are}.")
    return Check("partition", Verdict.OK, ",".join(names) + ("" if spec.partition else " (the site's default)"))


def _limit(name: str, limit: _Limit, spec: JobSpec, asked: Sequence[Partition], facts: SiteFacts) -> Check:
    """One limit: it fails when none of the asked partitions can keep it, for Slurm takes any that can."""
    broken = {part.name: why for part in asked if (why := limit(spec, part))}
    if len(broken) < len(asked):
        spared = [part.name for part in asked if part.name not in broken]
        return Check(name, Verdict.OK, "; ".join([f"{', '.join(spared)} can take it", *broken.values()]))
    fitting = [part.name for part in facts.partitions if part.available and not _broken(spec, part)]
    others = f"Partitions that would take the job: {', '.join(fitting)}." if fitting else "No partition here takes it."
    return Check(name, Verdict.FAILS, "; ".join(broken.values()), f"Ask for less, or choose another. {others}")


def _broken(spec: JobSpec, part: Partition) -> bool:
    return any(limit(spec, part) for limit in _LIMITS.values())


def _nodes(spec: JobSpec, part: Partition) -> str | None:
    most = min(part.nodes, part.max_nodes if part.max_nodes is not None else part.nodes)
    if spec.resources.nodes > most:
        return f"{spec.resources.nodes} nodes are asked for and partition {part.name} allows {most}"
    return None


def _gpus(spec: JobSpec, part: Partition) -> str | None:
    wanted, kind = spec.resources.gpus_per_node, spec.resources.gpu_type
    if wanted > part.gpus_per_node:
        return f"{wanted} GPUs per node are asked for and nodes of partition {part.name} have {part.gpus_per_node}"
    if wanted and kind and part.gpu_types and kind not in part.gpu_types:
        return f"GPUs of type {kind} are asked for and partition {part.name} has {', '.join(part.gpu_types)}"
    return None


def _time(spec: JobSpec, part: Partition) -> str | None:
    asked = spec.resources.time
    if asked and part.max_time is not None and asked > part.max_time:
        limit = format_walltime(part.max_time)
        return f"a walltime of {format_walltime(asked)} is asked for and partition {part.name} allows {limit}"
    return None


def _cpus(spec: JobSpec, part: Partition) -> str | None:
    tasks, each = spec.resources.tasks_per_node, spec.resources.cpus_per_task
    if not part.cpus_per_node or tasks * (each or 1) <= part.cpus_per_node:
        return None
    asked = f"{tasks} tasks per node" if each is None else f"{tasks * each} CPUs per node"
    return f"{asked} are asked for and nodes of partition {part.name} have {part.cpus_per_node} CPUs"


def _memory(spec: JobSpec, part: Partition) -> str | None:
    wanted = spec.resources.memory
    if isinstance(wanted, int) and part.memory_per_node and wanted > part.memory_per_node:
        return f"{wanted} MiB per node are asked for and nodes of partition {part.name} have {part.memory_per_node}"
    return None


_LIMITS: dict[str, _Limit] = {"nodes": _nodes, "gpus": _gpus, "cpus": _cpus, "memory": _memory, "time": _time}
