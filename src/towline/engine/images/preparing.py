"""Which file a job's image is, and whether it is there: asked before anything is planned."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import replace

from towline.config.profile import ClusterProfile
from towline.container.cache import CachedImage, Found, Nodes, find_call, name_of, parse_found
from towline.container.reference import registry_form
from towline.container.registry import Manifest
from towline.engine.outcomes import check_ending, last_words
from towline.engine.planning.beforehand import AS_THEY_ARE, Prepared
from towline.engine.planning.checks import asked_partitions
from towline.engine.planning.containers import runtime_of
from towline.engine.planning.defaults import fill_in, with_preset
from towline.engine.registry import problem
from towline.engine.session import Session
from towline.models.errors import RemoteFault
from towline.models.image import Image
from towline.models.plan import Check, PlannedImage, Verdict
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.submission import environment_error

OLD_DAYS = 30
"""Days after which a tag's file that is reused without asking the registry is called old."""

Decision = tuple["PlannedImage | None", Check, str]


def cache_of(profile: ClusterProfile) -> str:
    """The directory of images."""
    return profile.image_cache or f"{profile.root}/images"


def place_of(profile: ClusterProfile) -> str:
    """The directory with the records of imports; empty for the cache's own, if it is the user's alone.

    A job starts what lies there, so nobody else may write to it. Each cache has its own.
    """
    if not (profile.image_owners and profile.image_cache):
        return ""
    return f"{profile.root}/images/for-{hashlib.sha256(profile.image_cache.encode()).hexdigest()[:10]}"


async def prepare(session: Session, spec: JobSpec, facts: SiteFacts) -> Prepared:
    """What files are made of a spec's images; takes a round trip for each image of a registry.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster could not be asked.
    """
    profile = session.profile
    facts = with_preset(facts, profile)
    spec = fill_in(spec, profile, facts).spec
    pulled = [text for text in spec.images if not Image.parse(text).is_file]
    wanted = spec.image_import or profile.image_import
    if not pulled or wanted == "never" or runtime_of(profile, facts) != "pyxis":
        return AS_THEY_ARE
    there = facts.partition(profile.import_partition)
    if there is None and profile.import_on == "job":
        return _nowhere(profile, facts) if wanted == "always" else AS_THEY_ARE
    found = {
        text: await _find_for(session, text, [nodes_of(each, facts) for each in jobs_with(spec, text)])
        for text in pulled
    }
    decisions = [
        decide(text, found[text], profile, time.time()) if text in found else _file(text) for text in spec.images
    ]
    return Prepared(
        tuple(image for image, _, _ in decisions if image),
        tuple(check for _, check, _ in decisions),
        tuple(note for _, _, note in decisions if note),
    )


def jobs_with(spec: JobSpec, text: str) -> tuple[JobSpec, ...]:
    """The job, or the components of a heterogeneous one, whose nodes start that image."""
    if not spec.components:
        return (spec,)
    apart = [role.name for role in spec.roles if role.on is None]
    starting = {role.on or role.name for role in spec.roles if (role.image or spec.image) == text}
    return tuple(each for name, each in zip(apart, spec.components, strict=True) if name in starting)


async def _find_for(session: Session, text: str, kinds: Sequence[Nodes]) -> Found:
    """The same for all kinds of nodes that start an image: their architectures count together."""
    wanted = [kind for number, kind in enumerate(kinds) if kind not in kinds[:number]]
    found = [await find(session, Image.parse(text), kind) for kind in wanted]
    return replace(found[0], arches=tuple(sorted({arch for each in found for arch in each.arches})))


_FEATURES = re.compile(r"[\w.-]+(?:&[\w.-]+)*")


def nodes_of(spec: JobSpec, facts: SiteFacts) -> Nodes:
    """Which nodes the job may get; of features what is more than a list of wanted ones is passed over."""
    features = spec.constraint or ""
    return Nodes(
        partitions=[part.name for part in asked_partitions(spec, facts)],
        inside=spec.nodelist or "",
        outside=spec.exclude or "",
        features=features.split("&") if _FEATURES.fullmatch(features) else (),
        gpu=spec.resources.gpu_type or "",
    )


async def find(session: Session, image: Image, nodes: Nodes) -> Found:
    """What the cluster has of an image, and what its registry says where that counts.

    Raises:
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster could not be asked.
    """
    profile = session.profile
    ask = profile.image_tags == "check" or bool(image.digest)
    outcome = await session.call(find_call(cache_of(profile), image, nodes, ask=ask, setup=profile.setup))
    check_ending(outcome, "looking for the image")
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    try:
        return parse_found(outcome.stdout.decode("utf-8", "replace"))
    except ValueError as error:
        why = last_words(outcome.stderr) or str(error)
        raise RemoteFault("the cluster could not be asked for the image", why=why, fix="Try again.") from None


def _nowhere(profile: ClusterProfile, facts: SiteFacts) -> Prepared:
    there = ", ".join(part.name for part in facts.partitions)
    evidence = f"images are imported on partition {profile.import_partition}, which {facts.cluster} does not have"
    return Prepared(checks=(Check("image", Verdict.FAILS, evidence, f"Set `import_partition`; there are: {there}."),))


def _file(text: str) -> Decision:
    return None, Check("image", Verdict.ON_SUBMIT, f"{text} must be a squashfs image that you can read"), ""


def decide(text: str, found: Found, profile: ClusterProfile, now: float) -> Decision:
    """The file that an image becomes, the verdict on it, and what the user should know.

    Args:
        text: the image as the job names it.
        found: what the cluster said.
        profile: the cluster's settings.
        now: seconds since 1970.
    """
    image = Image.parse(text)
    if len(found.arches) != 1:
        kinds = " and ".join(found.arches)
        evidence = f"the nodes that the job may get are {kinds}, and a file made of {text} is for one of them"
        fix = (
            "Name nodes of one kind with --partition, --constraint, --gpu-type or --nodelist, or an image of its own "
            "for each role; or have each pull the image when the job starts: --image-import never."
        )
        return None, Check("image", Verdict.FAILS, evidence, fix), ""
    (arch,) = found.arches
    manifest = found.manifest
    if manifest is not None and not manifest.found:
        return _unanswered(text, arch, found, manifest, profile)
    digest = image.digest or (manifest.digest if manifest else "")
    cached = found.cached(arch, digest, profile.image_owners, registry_form(image))
    if cached:
        return _ready(text, cached, found, profile, _old(text, cached, now) if not digest else "")
    if why := found.lacking(arch):
        fix = "Make room there (`towline images prune`, `towline gc`), or set `image_cache` to another directory."
        return None, Check("image", Verdict.FAILS, f"no file can be made of {text}: {why}", fix), ""
    return _to_import(text, arch, digest, profile)


def _unanswered(text: str, arch: str, found: Found, manifest: Manifest, profile: ClusterProfile) -> Decision:
    """The registry does not give the image now: what is in the cache counts, or the refusal does."""
    error = problem(manifest, text)
    why = f"{error.what}: {error.why}" if error and manifest.curl else "there is no curl on the login host to ask with"
    if cached := found.cached(arch, "", profile.image_owners, registry_form(Image.parse(text))):
        return _ready(text, cached, found, profile, f"{text} was not compared with its registry: {why}")
    if manifest.code and error:
        return None, Check("image", Verdict.FAILS, why, error.fix), ""
    planned, check, _ = _to_import(text, arch, "", profile)
    return planned, Check("image", Verdict.CANNOT_TELL, f"{check.evidence}; {why}"), ""


def _ready(text: str, cached: CachedImage, found: Found, profile: ClusterProfile, note: str) -> Decision:
    path = f"{cache_of(profile)}/{cached.name}.sqsh"
    owner = "" if found.is_own(cached) else cached.user
    digest = cached.notes.get("digest", "")
    planned = PlannedImage(text, path, cached.arch, digest, ready=True, owner=owner, place=place_of(profile))
    whose = f", made by {owner}" if owner else ""
    return planned, Check("image", Verdict.ON_SUBMIT, f"{text} is in the cache{whose}: {path}"), note


def _to_import(text: str, arch: str, digest: str, profile: ClusterProfile) -> Decision:
    path = f"{cache_of(profile)}/{name_of(Image.parse(text), arch, digest)}.sqsh"
    maker = f"a job on {profile.import_partition}" if profile.import_on == "job" else "the login host"
    evidence = f"{maker} makes {path} of {text} before this one starts"
    return PlannedImage(text, path, arch, digest, place=place_of(profile)), Check("image", Verdict.OK, evidence), ""


def _old(text: str, cached: CachedImage, now: float) -> str:
    days = int((now - cached.modified) / 86400)
    if days < OLD_DAYS:
        return ""
    return f"the file of {text} is {days} days old, and its registry was not asked; `towline images pull` renews it"
