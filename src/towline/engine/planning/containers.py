"""Which runtime starts a job's containers, with which words, and whether it can start these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from towline.config.profile import ClusterProfile
from towline.container.apptainer import exec_words
from towline.container.pyxis import srun_options
from towline.models.image import Image
from towline.models.parts import Mount
from towline.models.plan import Check, Verdict
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec

Runtime = Literal["pyxis", "apptainer", "singularity", "none"]


def runtime_of(profile: ClusterProfile, facts: SiteFacts) -> Runtime:
    """The runtime that the profile names, else the first that the site has; Pyxis where that is not known."""
    if profile.runtime != "auto":
        return profile.runtime
    found = [word for word in ("pyxis", "apptainer", "singularity") if word in (facts.runtimes or ())]
    return cast("Runtime", found[0]) if found else "pyxis"


def check_image(spec: JobSpec, profile: ClusterProfile, facts: SiteFacts) -> Check:
    """Whether there is something that can start the spec's images. Its defaults are filled in."""
    runtime = runtime_of(profile, facts)
    if runtime == "none":
        return _on_nodes(spec, profile)
    if spec.image is None and not (spec.roles and all(role.image for role in spec.roles)):
        return Check(
            "image",
            Verdict.FAILS,
            "the job names no image and the cluster's profile has none",
            "Give one with --image, or set `image` in the profile.",
        )
    if problem := _cannot_start(spec, runtime, profile, facts):
        return Check("image", Verdict.FAILS, *problem)
    kind = "a squashfs image" if runtime == "pyxis" else f"an image file of {runtime}'s"
    files = [image for image in spec.images if Image.parse(image).is_file]
    pulled = [image for image in spec.images if image not in files]
    evidence = [f"{image} must be {kind} that you can read" for image in files]
    evidence += [f"{image} is pulled from its registry when the job starts" for image in pulled]
    return Check("image", Verdict.ON_SUBMIT if files else Verdict.OK, "; ".join(evidence))


def _on_nodes(spec: JobSpec, profile: ClusterProfile) -> Check:
    if not spec.images:
        return Check("image", Verdict.OK, "none: the command runs on the nodes themselves")
    return Check(
        "image",
        Verdict.FAILS,
        f"the job names {spec.images[0]}, and the profile {profile.name} says that there is no container runtime",
        "Leave the image out, or set `runtime` in the profile to what the site has.",
    )


def _cannot_start(spec: JobSpec, runtime: Runtime, profile: ClusterProfile, facts: SiteFacts) -> tuple[str, str] | None:
    """Why the runtime cannot start the job, and what to do."""
    sif = next((image for image in spec.images if Image.parse(image).is_sif), "")
    if runtime == "pyxis":
        if sif:
            return f"{sif} is an image of Apptainer's, and Pyxis starts squashfs files", (
                "Name the image in its registry, or a .sqsh file; if the site has Apptainer, set `runtime`."
            )
        if profile.runtime == "auto" and facts.runtimes == ():
            return (
                f"{facts.cluster} has no container runtime: its srun has no --container-image, and there is neither "
                "Apptainer nor Singularity"
            ), (
                "Ask the site for Pyxis and Enroot; if only its nodes have a runtime, name that as `runtime` in the "
                'profile; `runtime = "none"` runs commands on the nodes themselves.'
            )
        return None
    if spec.container.name:
        return f"a named container needs Pyxis, and this cluster's runtime is {runtime}", "Leave its name out."
    return None


def container_words(
    spec: JobSpec, reference: str | None, started: Image, mounts: Sequence[Mount], runtime: Runtime, role: str = ""
) -> tuple[str, ...]:
    """The words of a step between `srun` with its options and the program; none on the bare node.

    Args:
        spec: the job, its defaults filled in.
        reference: the image as the job names it; None for none.
        started: what it is started from.
        mounts: all that the container sees.
        runtime: what starts it.
        role: the role whose step it is; empty for a job without roles.
    """
    if not reference or runtime == "none":
        return ()
    container = spec.container
    if role and container.name:  # roles may share nodes, and start at the same time
        container = container.model_copy(update={"name": f"{container.name}-{role}"})
    if runtime == "pyxis":
        return srun_options(started, mounts, workdir=spec.workdir, mount_home=spec.mount_home, container=container)
    parts = [each.resources for each in spec.components] or [spec.resources]
    return exec_words(
        runtime,
        started,
        mounts,
        workdir=spec.workdir,
        mount_home=spec.mount_home,
        container=container,
        gpus=any(part.gpus_per_node for part in parts),
    )
