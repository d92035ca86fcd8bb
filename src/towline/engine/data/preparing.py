"""Which copy of data from elsewhere a job gets, and whether it is there: asked before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from towline.config.profile import ClusterProfile
from towline.engine.data.program import program
from towline.engine.outcomes import check_ending, last_words
from towline.engine.planning.beforehand import AS_IT_IS, Staged
from towline.engine.planning.rendering import is_below
from towline.engine.session import Session
from towline.launch.files import secrets_file
from towline.models.errors import RemoteFault
from towline.models.plan import Check, PlannedInput, Verdict
from towline.models.secrets import Secret
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.models.units import size
from towline.slurm.submission import environment_error
from towline.storage.remote import (
    VARIABLES,
    Access,
    Copy,
    Found,
    Problem,
    find_call,
    is_remote,
    name_of,
    parse_found,
    secrets_of,
)

_SAID = frozenset({"credentials", "not-found", "names"})
"""What a source says that will not be otherwise when a job asks it with the same keys."""
_SURE = _SAID | {"staging-python"}
"""What a job would come to as well."""


def place_of(profile: ClusterProfile) -> str:
    """The directory of staged copies."""
    return profile.data_cache or f"{profile.root}/staged"


def asking_python(profile: ClusterProfile) -> str:
    """The Python that a login host asks sources with; empty for its own, where it does not see the one of the nodes."""
    python = profile.staging_python or ""
    return "" if profile.staging_image or is_below(python, profile.unseen) else python


def access_of(spec: JobSpec, profile: ClusterProfile, secrets: Mapping[str, Secret]) -> Access:
    """What the spec's sources are asked with: the job's own variables win over the profile's."""
    site = {"S3_ENDPOINT_URL": profile.s3_endpoint or "", "CLOUD_REGION": profile.s3_region or ""}
    own = {name: spec.env[name] for name in VARIABLES if name in spec.env}
    uris = (*remote_uris(spec), *spec.outputs.values())
    given = {name: secrets[name] for name in secrets_of(uris) if name in secrets}
    variables = {name: value for name, value in {**site, **own}.items() if value}
    return Access(variables, secrets_file(given) if given else b"")


def remote_uris(spec: JobSpec) -> tuple[str, ...]:
    """The spec's inputs that lie elsewhere, each once."""
    return tuple(dict.fromkeys(uri for uri in spec.inputs.values() if is_remote(uri)))


async def stage_plan(
    session: Session,
    spec: JobSpec,
    facts: SiteFacts,
    secrets: Mapping[str, Secret],
    directory: str,
    parts: Sequence[str] = (),
) -> Staged:
    """What copies the spec's data from elsewhere becomes; takes a round trip if there is any.

    Args:
        session: the cluster.
        spec: the job.
        facts: what the site said of itself.
        secrets: values of secrets that are known already.
        directory: the job's directory, below which lies what the job brings itself.
        parts: URIs of files that must be among the data; they are asked for, and not brought by themselves.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster could not be asked.
    """
    uris, profile = remote_uris(spec), session.profile
    if not uris:
        return AS_IT_IS
    if facts.partition(profile.import_partition) is None:
        return Staged(checks=(_nowhere(profile, facts),))
    access = access_of(spec, profile, secrets)
    every = (*uris, *(part for part in parts if part not in uris))
    answers = zip(every, await find(session, every, access), strict=True)
    answered = {uri: with_keys_to_come(uri, found, spec, secrets) for uri, found in answers}
    asked = tuple(answered[uri] for uri in uris)
    decisions = {uri: decide(uri, found, profile, access) for uri, found in zip(uris, asked, strict=True)}
    fetched = [in_job(spec, target, decisions[spec.inputs[target]], directory) for target in spec.fetch]
    before = {
        target: decisions[uri] for target, uri in spec.inputs.items() if uri in decisions and target not in spec.fetch
    }
    uris_before = {spec.inputs[target] for target in before}
    inputs = [replace(one, target=target) for target, (one, _, _) in before.items()]
    coming = {uri: decisions[uri] for uri in uris_before}
    room = _room(coming, [found for uri, found in zip(uris, asked, strict=True) if uri in coming])
    told = [*coming.values(), *fetched]
    return Staged(
        (*inputs, *(one for one, _, _ in fetched)),
        (*(check for _, check, _ in told), *room, *missing_parts(answered, parts)),
        tuple(note for _, _, note in told if note),
    )


def missing_parts(answered: Mapping[str, Found], parts: Sequence[str]) -> tuple[Check, ...]:
    """Files that a dataset must have, and that its source says it has not."""
    problems = ((uri, answered[uri].problem) for uri in parts)
    fix = "See that the dataset's root is right, or give the key of the specification itself."
    return tuple(
        Check("datasets", Verdict.FAILS, problem.why if uri in problem.why else f"{uri}: {problem.why}", fix)
        for uri, problem in problems
        if problem and problem.kind == "not-found"
    )


async def find(session: Session, uris: Sequence[str], access: Access) -> tuple[Found, ...]:
    """What the cluster has of URIs, and what their sources say.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster could not be asked.
    """
    profile = session.profile
    call = find_call(place_of(profile), uris, program(), asking_python(profile), access, profile.setup)
    outcome = await session.call(call)
    check_ending(outcome, "looking for the job's data")
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    try:
        return parse_found(outcome.stdout.decode("utf-8", "replace"), uris)
    except ValueError as error:
        why = last_words(outcome.stderr) or str(error)
        raise RemoteFault("the cluster could not be asked for the job's data", why=why, fix="Try again.") from None


def with_keys_to_come(uri: str, found: Found, spec: JobSpec, secrets: Mapping[str, Secret]) -> Found:
    """What a source says to somebody without keys is not its last word when the job has some that are not known yet."""
    missing = [name for name in secrets_of([uri]) if name in spec.secrets and name not in secrets]
    if not missing or not found.problem or found.problem.kind not in _SAID:
        return found
    why = f"{found.problem.why}; it is asked again with {' and '.join(missing)}"
    return replace(found, problem=Problem("other", why, found.problem.fix))


Decision = tuple[PlannedInput, Check, str]


def decide(uri: str, found: Found, profile: ClusterProfile, access: Access) -> Decision:
    """The copy of one URI, the verdict on it, and what the user should know."""
    place = place_of(profile)
    problem = found.problem
    if problem and problem.kind in _SURE:
        nothing = PlannedInput(uri, "", f"{place}/{name_of(uri, access.variables)}/data")
        return nothing, Check("inputs", Verdict.FAILS, problem.why, problem.fix), ""
    if copy := found.copy(found.version):
        note = "" if not problem else f"the copy of {uri} was not compared with its source: {problem.why}"
        return (
            _there(uri, copy, place),
            Check("inputs", Verdict.ON_SUBMIT, f"{uri} is staged: {place}/{copy.name}"),
            note,
        )
    path = f"{place}/{name_of(uri, access.variables, found.version)}/data"
    planned = PlannedInput(uri, "", path, found.version, found.size)
    evidence = f"a job on {profile.import_partition} brings {uri} to {path} before this one starts"
    if problem:
        return planned, Check("inputs", Verdict.CANNOT_TELL, f"{evidence}; {problem.why}"), ""
    files = "one file" if found.kind == "file" else f"{found.files} files"
    return planned, Check("inputs", Verdict.OK, f"{evidence}: {files}, {size(found.size)}"), ""


IN_JOB_BYTES = 1 << 30
"""Bytes from which on GPUs would wait too long for an input that their own job brings."""


def in_job(spec: JobSpec, target: str, decided: Decision, directory: str) -> Decision:
    """The same for an input that the job brings itself: whatever copy there is, it gets its own."""
    one, check, _ = decided
    most = 0 if spec.fetch[target] == "in-job-any-size" else IN_JOB_BYTES
    number = list(spec.fetch).index(target)
    own = replace(one, target=target, path=f"{directory}/inputs/{number}/data", ready=False, most=most)
    if check.verdict is Verdict.FAILS:
        return own, check, ""
    if most and one.size > most:
        evidence = f"{one.uri} has {size(one.size)}, and its job's own nodes would wait while it comes"
        fix = (
            f"Leave --fetch {target} out: a CPU job brings it before. --fetch {target}=in-job-any-size does it anyway."
        )
        return own, Check("inputs", Verdict.FAILS, evidence, fix), ""
    evidence = f"the job itself brings {one.uri} to {target} before its command starts"
    if not one.version:
        return own, Check("inputs", Verdict.CANNOT_TELL, f"{evidence}; its source did not say what it has"), ""
    return own, Check("inputs", Verdict.OK, f"{evidence}: {size(one.size)}"), ""


def _there(uri: str, copy: Copy, place: str) -> PlannedInput:
    kept = copy.notes.get("size", "")
    path = f"{place}/{copy.name}/data"
    return PlannedInput(uri, "", path, copy.notes.get("version", ""), int(kept) if kept.isdecimal() else 0, ready=True)


def _nowhere(profile: ClusterProfile, facts: SiteFacts) -> Check:
    there = ", ".join(part.name for part in facts.partitions)
    evidence = f"data is staged on partition {profile.import_partition}, which {facts.cluster} does not have"
    return Check("inputs", Verdict.FAILS, evidence, f"Set `import_partition`; there are: {there}.")


def _room(decisions: Mapping[str, Decision], asked: Sequence[Found]) -> tuple[Check, ...]:
    """Whether all that is to come fits."""
    coming = [(one, found) for (one, _, _), found in zip(decisions.values(), asked, strict=True) if not one.ready]
    space = next((found.space for _, found in coming if found.space), None)
    if space is None:
        return ()
    kib = sum((one.size + 1023) // 1024 for one, _ in coming)
    why = space.lacking(kib, sum(found.files for _, found in coming))
    fix = "Make room there (`towline gc` says what could go), or set `data_cache` in the profile."
    return (Check("inputs", Verdict.FAILS, why, fix),) if why else ()
