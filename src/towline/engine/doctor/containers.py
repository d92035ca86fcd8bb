"""Checks of the container runtime: Pyxis, Enroot, its directories, its registry credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from towline.engine.doctor.facts import Facts, Finding, Kind, Repair, cannot_tell, fails, ok
from towline.models.image import Image
from towline.slurm.doctor import Room

_NEEDED = ("--container-image", "--container-mounts")
NGC = "nvcr.io"
AUTHENTICATOR = "authn.nvidia.com"
LITTLE_KIB = {"RUNTIME": 16 * 1024, "CACHE": 2 << 20, "DATA": 2 << 20, "TEMP": 2 << 20}
"""Less free space than this (in KiB) will not hold what Enroot puts there for an ordinary image of some GiB."""


def pyxis(facts: Facts) -> Sequence[Finding]:
    """Slurm's srun has Pyxis' options, where jobs are started by it."""
    answer, runtime = facts.answer, facts.profile.runtime
    if runtime == "none":
        return [ok("pyxis", "not needed: the profile's `runtime` is none, and jobs run on the nodes themselves")]
    if runtime not in ("auto", "pyxis"):
        return [cannot_tell("pyxis", f"not needed: the profile's `runtime` is {runtime}, which is not looked at")]
    if not (answer and answer.has("slurm")):
        return [cannot_tell("pyxis", "Slurm was not reached")]
    options = answer.all("pyxis", "option")
    if any(needed not in options for needed in _NEEDED):
        fix = "Ask the site for Pyxis (https://github.com/NVIDIA/pyxis), on the login hosts and the nodes."
        return [fails("pyxis", Kind.CLUSTER, "srun has no --container-image", fix)]
    version = answer.fact("pyxis", "version") or "version not told"
    if answer.fact("pyxis", "plugin").startswith("optional"):
        note = "`optional` in plugstack.conf, so that a node may run commands without the container (Towline's refuse)"
        return [ok("pyxis", f"{version}; {note}")]
    return [ok("pyxis", version)]


def enroot(facts: Facts) -> Sequence[Finding]:
    """Enroot is there; login hosts may do without it."""
    answer = facts.answer
    if answer is None:
        return [cannot_tell("enroot", "no login host was reached")]
    reply = answer.reply("enroot")
    if reply is None:
        return [cannot_tell("enroot", "not on the login host; the nodes may have it", "towline doctor --deep")]
    if not reply.ok:
        return [fails("enroot", Kind.CLUSTER, f"enroot fails: {reply.words}", "Ask the site to mend Enroot.")]
    return [ok("enroot", f"{reply.out.strip()} on the login host")]


def enroot_space(facts: Facts) -> Sequence[Finding]:
    """Enroot's directories can be written and have space, on the login host."""
    answer = facts.answer
    if answer is None or answer.reply("enroot") is None:
        return [cannot_tell("enroot-space", "not on the login host; the nodes may have it", "towline doctor --deep")]
    return [places_finding("enroot-space", answer.enroot_places)]


def credentials(facts: Facts) -> Sequence[Finding]:
    """The credentials that the profile's image may need are there, and private."""
    if facts.answer is None:
        return [cannot_tell("credentials", "no login host was reached")]
    found, registry = facts.answer.credentials, registry_of(facts.profile.image)
    if not found.mode:
        if registry == NGC:
            return [_missing(registry, f"there is no {found.path}")]
        return [ok("credentials", f"there is no {found.path}; images that anybody may pull need none")]
    if int(found.mode, 8) & 0o077:
        evidence = f"{found.path} is open to other users (mode {found.mode})"
        repair = Repair("chmod-there", found.path)
        return [fails("credentials", Kind.ACCESS, evidence, f"On the cluster: chmod 600 {found.path}", repair=repair)]
    machines = {machine for machine, _ in found.machines}
    if registry == NGC and not {NGC, AUTHENTICATOR} <= machines:
        return [
            _missing(registry, f"{found.path} has no line for {' and '.join(sorted({NGC, AUTHENTICATOR} - machines))}")
        ]
    told = ", ".join(f"{machine} as {user}" for machine, user in found.machines) or "no lines"
    return [ok("credentials", f"{found.path}, mode {found.mode}: {told}")]


# --- What other modules use, too ---


def places_finding(name: str, places: Mapping[str, Room]) -> Finding:
    """What is to be said of Enroot's directories on a host."""
    shown = [f"{what.lower()} {room.path}: {_free(room)}" for what, room in places.items()]
    for what, room in places.items():
        if not room.writable:
            fix = f"Ask the site to let you write in {room.path}, or to set ENROOT_{what}_PATH elsewhere."
            return fails(name, Kind.CLUSTER, f"{room.path} cannot be written", fix)
        if room.free_kib is not None and room.free_kib < LITTLE_KIB.get(what, 0):
            fix = f"Free space there, or ask the site to set ENROOT_{what}_PATH to a bigger disk in enroot.conf."
            return fails(
                name, Kind.STORAGE, f"little space for Enroot's {what.lower()}: {room.path} has {_free(room)}", fix
            )
    return ok(name, "; ".join(shown)) if shown else cannot_tell(name, "not told")


def registry_of(image: str | None) -> str:
    """The registry of an image reference; empty for files, the default registry and none."""
    return Image.parse(image).registry if image else ""


def _missing(registry: str, evidence: str) -> Finding:
    fix = (
        "1. Make a key: https://org.ngc.nvidia.com/setup/api-keys\n"
        f"2. Give it to the cluster: towline registry login {registry}"
    )
    return fails("credentials", Kind.ACCESS, evidence, fix)


def _free(room: Room) -> str:
    return "space not known" if room.free_kib is None else f"{room.free_kib / (1 << 20):.1f} GiB free ({room.kind})"
