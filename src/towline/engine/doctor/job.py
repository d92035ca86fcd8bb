"""Checks that only a job can make: what a node sees, whether the container is the image, how a job may start again."""

from __future__ import annotations

from collections.abc import Sequence

from towline.engine.doctor.containers import NGC, places_finding, registry_of
from towline.engine.doctor.facts import Facts, Finding, Kind, cannot_tell, fails, ok
from towline.models.plan import Verdict
from towline.slurm.doctor import Answer

_IDS = ("deep-root", "deep-container", "deep-gpus", "deep-enroot", "deep-credentials", "deep-next-attempt")


def deep(facts: Facts) -> Sequence[Finding]:
    """All that the job found; nothing when no job was asked for."""
    answer = facts.deep
    if answer is None:
        return []
    if problem := _not_run(answer):
        return [problem, *(cannot_tell(name, "the job did not run") for name in _IDS)]
    first = ok("deep-job", f"ran on {answer.fact('node', 'host')} ({answer.fact('node', 'system') or 'Linux'})")
    rest = [
        _root(facts, answer),
        _container(facts, answer),
        _gpus(answer),
        _enroot(answer),
        _credentials(facts, answer),
    ]
    return [first, *rest, _next_attempt(answer)]


def _not_run(answer: Answer) -> Finding | None:
    if answer.has("no-place"):
        words = answer.complaints.get("no-place", "")
        return fails("deep-job", Kind.STORAGE, f"the root cannot be written: {words}", "See the checks root and space.")
    submitted = answer.reply("submit")
    if submitted is None:
        return cannot_tell("deep-job", "no login host with Slurm was reached")
    if not submitted.ok:
        return fails(
            "deep-job", Kind.SLURM, f"sbatch refused it: {submitted.words}", "See the checks account and partition."
        )
    if answer.has("node"):
        return None
    state = answer.reply("state")
    word, _, reason = (state.out.strip() if state else "").partition("|")
    if word in ("PENDING", "CONFIGURING", "RUNNING", ""):
        evidence = f"the job was {word.lower() or 'waiting'}{f' ({reason})' if reason else ''} until time was up"
        return cannot_tell("deep-job", evidence, "towline doctor --deep --wait 30m")
    output = " ".join(_output(answer))
    evidence = f"the job ended as {word} before it could look: {output or reason}"
    fix = "See that the nodes see `root`, which must be on the shared file system, or ask the site with these words."
    return fails("deep-job", Kind.CLUSTER, evidence, fix)


def _output(answer: Answer) -> list[str]:
    rows = answer.facts.get("output", {})
    return [f"{key} {value}".strip() for key, values in rows.items() for value in values][-3:]


def _root(facts: Facts, answer: Answer) -> Finding:
    if "written" in answer.facts.get("node-root", {}):
        return ok("deep-root", f"{facts.profile.root} can be written on the node")
    words = answer.complaints.get("node-root", "")
    fix = "Set `root` in the profile to a directory that the nodes see and may write."
    return fails("deep-root", Kind.STORAGE, f"the node cannot write below {facts.profile.root}: {words}", fix)


def _container(facts: Facts, answer: Answer) -> Finding:
    reply = answer.reply("container")
    if reply is None:
        return cannot_tell("deep-container", "the profile names no image", "Set `image` in the profile.")
    lines = reply.out.splitlines()
    if not reply.ok:
        words = [line.strip() for line in reply.err.splitlines() if "[ERROR]" in line or "pyxis:" in line] or [
            reply.words
        ]
        fix = f"See that the image is right: {facts.profile.image}"
        if registry_of(facts.profile.image):
            fix = f"towline registry check {facts.profile.image}"
        return fails("deep-container", Kind.CLUSTER, f"it did not start: {' '.join(words[-4:])}", fix)
    if "inside" not in lines:
        fix = (
            "Ask the site to make Pyxis `required` in plugstack.conf: this node ran the command without the container."
        )
        return fails("deep-container", Kind.CLUSTER, "the command ran on the bare node, not in the image", fix)
    system = next((line.partition(" ")[2] for line in lines if line.startswith("system ")), "no os-release")
    return ok("deep-container", f"{facts.profile.image} started; inside it is {system}")


def _gpus(answer: Answer) -> Finding:
    given = answer.fact("node", "gpus")
    reply = answer.reply("container")
    lines = reply.out.splitlines() if reply else []
    seen = [line for line in lines if line.startswith("gpu GPU ")]
    if given in ("", "-"):
        return ok("deep-gpus", "the job asked for none")
    if reply is not None and not reply.ok:
        return cannot_tell("deep-gpus", f"Slurm gave {given}; the container did not start")
    # nvidia-smi says on stdout, too, that it found none, or that one does not answer.
    words = next((line[4:] for line in lines if line.startswith("smi ")), "")
    if seen and not words:
        return ok("deep-gpus", f"{len(seen)} seen in the container; Slurm gave {given}")
    if reply is None or "no-nvidia-smi" in reply.out:
        return cannot_tell("deep-gpus", f"Slurm gave {given}; there is no nvidia-smi to ask in the container")
    fix = (
        f"Ask the site to look at {answer.fact('node', 'host')}: at the GPUs and the driver (nvidia-smi -L there), and "
        "at Enroot's hook for GPUs (98-nvidia.sh)."
    )
    sees = f"{len(seen)} GPUs" if seen else "no GPU"
    evidence = f"Slurm gave {given}, and the container sees {sees}" + (f"; nvidia-smi says: {words}" if words else "")
    return fails("deep-gpus", Kind.CLUSTER, evidence, fix)


def _enroot(answer: Answer) -> Finding:
    return places_finding("deep-enroot", answer.enroot_places)


def _credentials(facts: Facts, answer: Answer) -> Finding:
    there, here = answer.credentials, facts.answer.credentials if facts.answer else None
    if there.mode and int(there.mode, 8) & 0o077:
        return fails("deep-credentials", Kind.ACCESS, f"{there.path} has mode {there.mode}", f"chmod 600 {there.path}")
    if here and here.mode and not there.mode:
        fix = (
            "Ask the site for a home directory on the nodes, or ENROOT_CONFIG_PATH on the shared disk; or use images "
            "that are files."
        )
        return fails("deep-credentials", Kind.ACCESS, f"{here.path} is on the login host and not on the node", fix)
    if not there.mode and registry_of(facts.profile.image) == NGC:
        return fails("deep-credentials", Kind.ACCESS, f"there is no {there.path}", f"towline registry login {NGC}")
    return ok("deep-credentials", f"{there.path}: " + ("there" if there.mode else "none, on the login host neither"))


def _next_attempt(answer: Answer) -> Finding:
    requeue, sbatch = answer.reply("requeue"), answer.reply("sbatch")
    ways = [
        name for name, reply in (("scontrol requeue", requeue), ("sbatch from the node", sbatch)) if reply and reply.ok
    ]
    if ways:
        return Finding("deep-next-attempt", Verdict.OK, f"a job may start again by {' and by '.join(ways)}")
    words = "; ".join(reply.words for reply in (requeue, sbatch) if reply)
    evidence = f"a job cannot start itself again ({words}); the next client does it"
    return cannot_tell("deep-next-attempt", evidence, "Leave a client running: towline run, or towline logs -f.")
