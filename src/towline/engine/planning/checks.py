"""What must hold before a job is sent: the spec against the facts of the site. Pure: values in, checks out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from towline.engine.planning.alternatives import elsewhere, preemption
from towline.engine.planning.fitting import RULES, Rule, takes
from towline.engine.planning.standing import (
    ENFORCING_ACCOUNTS,
    ENFORCING_LIMITS,
    account_of,
    associations_of,
    enforces,
    qos_of,
    time_bounds,
)
from towline.engine.redaction import looks_secret
from towline.launch.files import input_variable
from towline.models.array import parse_tasks
from towline.models.parts import shared_path
from towline.models.plan import Check, Verdict
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.models.times import seconds_from_now
from towline.models.values import format_walltime


def check_spec(spec: JobSpec, facts: SiteFacts, required_paths: Sequence[str]) -> tuple[Check, ...]:
    """Every check of a spec whose defaults are filled in, in the order that a person would look."""
    checks: list[Check] = []
    for number, component in enumerate(spec.components):
        checks += [replace(each, evidence=f"component {number}: {each.evidence}") for each in _place(component, facts)]
    if not spec.components:
        checks += _place(spec, facts)
    checks += [check for rule in _OWN if (check := rule(spec, facts))]
    if required_paths:
        checks.append(Check("paths", Verdict.ON_SUBMIT, "on the cluster there must be " + ", ".join(required_paths)))
    return tuple(checks)


def _place(spec: JobSpec, facts: SiteFacts) -> list[Check]:
    """Whether the partitions that are asked for are there, and can take the job."""
    names = spec.partition or _site_default(facts)
    found = asked_partitions(spec, facts)
    checks = [_partition(spec, names, facts)]
    checks += [check for rule in _RIGHTS if (check := rule(spec, facts))]
    if found and len(found) == len(names):
        checks += [_rule(name, rule, spec, found, facts) for name, rule in RULES.items()]
        checks += _together(spec, found, facts, checks)
    return checks


def unseen_paths(paths: Sequence[str]) -> tuple[Check, ...]:
    """What can be said of paths that login hosts cannot see."""
    if not paths:
        return ()
    evidence = f"the profile says that login hosts cannot see {', '.join(paths)}"
    return (Check("unseen", Verdict.CANNOT_TELL, evidence),)


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


# --- What is named has to be there ---


def _partition(spec: JobSpec, names: Sequence[str], facts: SiteFacts) -> Check:
    there_are = ", ".join(part.name + _drawback(spec, part, facts) for part in facts.partitions)
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
    risks = {name: word for name in names if (part := facts.partition(name)) and (word := preemption(part, facts))}
    told = "".join(f"; jobs in {name} are {word} when others want the nodes" for name, word in risks.items())
    return Check("partition", Verdict.OK, ",".join(names) + ("" if spec.partition else " (the site's default)") + told)


def _drawback(spec: JobSpec, part: Partition, facts: SiteFacts) -> str:
    if not part.available:
        return " (closed)"
    return "" if takes(spec, part, facts) else " (cannot take this job)"


def _account(spec: JobSpec, facts: SiteFacts) -> Check | None:
    if not enforces(facts, ENFORCING_ACCOUNTS):
        return None
    account = account_of(spec, facts)
    if facts.associations is None:
        return Check("account", Verdict.CANNOT_TELL, "accounting did not say which accounts are yours")
    yours = list(dict.fromkeys(each.account for each in facts.associations))
    if account and account not in [each.lower() for each in yours]:
        fix = f"Choose one of yours with --account: {', '.join(yours)}." if yours else "Ask the site for an account."
        return Check("account", Verdict.FAILS, f"{account} is no account of yours on {facts.cluster}", fix)
    if not account:
        return Check("account", Verdict.CANNOT_TELL, "the job names no account, and your default one is not known")
    return Check("account", Verdict.OK, account + ("" if spec.account else " (your default)"))


def _qos(spec: JobSpec, facts: SiteFacts) -> Check | None:
    name = qos_of(spec, facts)
    if not name:
        return None
    if facts.qoses is None:
        return Check("qos", Verdict.CANNOT_TELL, f"accounting did not say whether there is a QOS {name}")
    granted = {each for found in associations_of(spec, facts) for each in found.qos}
    if not facts.qos(name):
        there = sorted(granted) or [each.name for each in facts.qoses]
        return Check("qos", Verdict.FAILS, f"{facts.cluster} has no QOS {name}", _choose("--qos", name, there))
    if enforces(facts, frozenset({"qos"})) and granted and name not in granted:
        evidence = f"account {account_of(spec, facts)} may not use QOS {name}"
        return Check("qos", Verdict.FAILS, evidence, _choose("--qos", name, sorted(granted)))
    return Check("qos", Verdict.OK, name + ("" if spec.qos else " (your default)"))


def _licenses(spec: JobSpec, facts: SiteFacts) -> Check | None:
    if not spec.resources.licenses:
        return None
    if facts.licenses is None:
        return Check("licenses", Verdict.CANNOT_TELL, "the cluster did not say which licenses it counts")
    there = dict(facts.licenses)
    for wanted in spec.resources.licenses:
        name, _, count = wanted.partition(":")
        if name not in there:
            fix = _choose("--licenses", name, sorted(there))
            return Check("licenses", Verdict.FAILS, f"{facts.cluster} counts no licenses {name}", fix)
        if count.isdecimal() and int(count) > there[name]:
            evidence = f"{count} licenses {name} are asked for and {facts.cluster} has {there[name]}"
            return Check("licenses", Verdict.FAILS, evidence, "Ask for fewer.")
    return Check("licenses", Verdict.OK, ", ".join(spec.resources.licenses))


def _choose(flag: str, name: str, there: Iterable[str]) -> str:
    names = list(there)
    near = difflib.get_close_matches(name, names, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    return f"{meant}Choose another with {flag}; there are: {', '.join(names)}." if names else "Leave it out."


# --- What a partition can take ---


def _rule(name: str, rule: Rule, spec: JobSpec, asked: Sequence[Partition], facts: SiteFacts) -> Check:
    """One rule of partitions: it fails when none of the asked ones keeps it, for Slurm takes any that does.

    Where EnforcePartLimits is ALL, Slurm refuses a job that one of them cannot take (slurm.conf(5)).
    """
    broken = {part.name: why for part in asked if (why := rule(spec, part, facts))}
    every = facts.part_limits == "ALL" and name in ("nodes", "time")
    if broken and (every or len(broken) == len(asked)):
        return Check(
            name,
            Verdict.FAILS,
            "; ".join(broken.values()),
            f"Ask for less, or choose another. {elsewhere(spec, facts, asked)}",
        )
    if broken:
        spared = ", ".join(part.name for part in asked if part.name not in broken)
        return Check(name, Verdict.OK, "; ".join([f"{spared} can take it", *broken.values()]))
    if name == "limits" and facts.partial and enforces(facts, ENFORCING_LIMITS):
        return Check(name, Verdict.CANNOT_TELL, "accounting did not say which limits hold for you")
    return Check(name, Verdict.OK, _TOLD.get(name, _nothing)(spec, asked, facts))


def _together(spec: JobSpec, asked: Sequence[Partition], facts: SiteFacts, so_far: Sequence[Check]) -> list[Check]:
    """Each rule may be kept by one partition, and no partition keep all."""
    if any(check.verdict is Verdict.FAILS for check in so_far) or any(takes(spec, part, facts) for part in asked):
        return []
    names = ", ".join(part.name for part in asked)
    fix = f"Ask for less, or choose another. {elsewhere(spec, facts, asked)}"
    return [Check("together", Verdict.FAILS, f"none of the partitions {names} can take all that is asked for", fix)]


def _nothing(_: JobSpec, asked: Sequence[Partition], __: SiteFacts) -> str:
    return ", ".join(part.name for part in asked) + " can take it"


def _nodes_told(spec: JobSpec, asked: Sequence[Partition], _: SiteFacts) -> str:
    most = ", ".join(f"{part.name} {part.nodes}" for part in asked)
    return f"{spec.resources.nodes} of {most}"


def _gpus_told(spec: JobSpec, asked: Sequence[Partition], _: SiteFacts) -> str:
    wanted = spec.resources
    if not wanted.gpus_per_node:
        return "none are asked for"
    kind = f" {wanted.gpu_type}" if wanted.gpu_type else ""
    return f"{wanted.gpus_per_node}{kind} on each node, {wanted.nodes * wanted.gpus_per_node} in all"


def _cpus_told(spec: JobSpec, asked: Sequence[Partition], _: SiteFacts) -> str:
    wanted = spec.resources
    tasks = f"{wanted.tasks_per_node} task{'s' if wanted.tasks_per_node > 1 else ''}"
    if wanted.cpus_per_task is None:
        return f"{tasks} on each node, with the CPUs that the site gives"
    return f"{tasks} of {wanted.cpus_per_task} CPUs on each node"


def _time_told(spec: JobSpec, asked: Sequence[Partition], facts: SiteFacts) -> str:
    time = spec.resources.time
    bounds = [bound for part in asked for bound in time_bounds(spec, part, facts)]
    said = format_walltime(time) if time else "the partition's default"
    if not bounds:
        return f"{said}; there is no limit"
    tightest = min(bounds, key=lambda bound: bound.most)
    return f"{said}; the tightest rule is {format_walltime(tightest.most)} of {tightest.whose}"


_TOLD: dict[str, Callable[[JobSpec, Sequence[Partition], SiteFacts], str]] = {
    "nodes": _nodes_told,
    "gpus": _gpus_told,
    "cpus": _cpus_told,
    "time": _time_told,
}


# --- What the spec itself says ---


def _unlimited(spec: JobSpec, facts: SiteFacts) -> Check | None:
    """Without a walltime Slurm would give the partition's limit, which here is none: such jobs never end."""
    names = spec.partition or _site_default(facts)
    if spec.resources.time is not None or len(asked_partitions(spec, facts)) < len(names):
        return None
    evidence = "neither the job nor the profile nor a partition says how long it may run, and Slurm would set no end"
    return Check("walltime", Verdict.FAILS, evidence, "Give one with --time, or set `time` in the profile.")


def _grace(spec: JobSpec, _: SiteFacts) -> Check | None:
    if not spec.warning:
        return None
    signal, grace = spec.warning
    if spec.resources.time and grace >= spec.resources.time:
        evidence = f"the signal would come {grace} s before the end, and the whole job has {spec.resources.time} s"
        return Check("signal", Verdict.FAILS, evidence, "Give a shorter --grace, or more --time.")
    return Check("signal", Verdict.OK, f"{signal} to every rank {grace} s before the end")


def _deadline(spec: JobSpec, _: SiteFacts) -> Check | None:
    """Slurm takes a job that cannot end by its deadline, and removes it at once (sbatch(1), `--deadline`)."""
    due, walltime = seconds_from_now(spec.deadline or ""), spec.resources.time
    if due is None or walltime is None or "time-min" in spec.sbatch:
        return None
    last_start = due - walltime
    if last_start > (seconds_from_now(spec.begin or "") or 0):
        return None
    evidence = (
        f"the deadline is {format_walltime(due)} from now, and the job has a walltime of {format_walltime(walltime)}"
    )
    begin = f" from {spec.begin} on" if spec.begin else ""
    return Check("deadline", Verdict.FAILS, evidence + begin, "Give a later --deadline, or less --time.")


def _tokens(spec: JobSpec, _: SiteFacts) -> Check | None:
    """A token in plain sight: the job's files on the shared disk and lists would show it."""
    variables = [*spec.env.items(), *(pair for role in spec.roles for pair in role.env.items())]
    places = [f"the variable {name}" for name, value in variables if looks_secret(value)]
    places += ["the command"] if looks_secret(spec.command_line) else []
    if not places:
        return None
    return Check(
        "secrets",
        Verdict.FAILS,
        f"what looks like a token or a private key stands in {' and in '.join(places)}, which is written down for all",
        "Give it with --secret NAME, and let the command read the variable NAME itself (docs/secrets.md).",
    )


def _inputs(spec: JobSpec, _: SiteFacts) -> Check | None:
    if not spec.inputs:
        return None
    if not spec.images:
        told = ", ".join(f"{uri} in ${input_variable(target)}" for target, uri in spec.inputs.items())
        return Check("inputs", Verdict.OK, f"without an image nothing is mounted; variables tell the place: {told}")
    near = {target: path for target, uri in spec.inputs.items() if (path := shared_path(uri))}
    if not near:
        return None
    shown = ", ".join(f"{path} at {target}" for target, path in near.items())
    return Check("inputs", Verdict.OK, f"mounted for reading: {shown}")


_RIGHTS = (_account, _qos, _licenses)


def _array(spec: JobSpec, facts: SiteFacts) -> Check | None:
    """Slurm counts from 0 to MaxArraySize - 1 (slurm.conf(5))."""
    if not spec.array:
        return None
    tasks, limit = parse_tasks(spec.array), facts.max_array_size
    if limit is not None and max(tasks) >= limit:
        why = f"{max(tasks)} is the highest number of a task, and {facts.cluster} takes numbers below {limit}"
        return Check("array", Verdict.FAILS, why, "Count from 0, or give each task several items to work on.")
    return Check("array", Verdict.OK, f"{len(tasks)} tasks")


_OWN = (_unlimited, _grace, _deadline, _tokens, _inputs, _array)
