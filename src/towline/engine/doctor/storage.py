"""Checks of the root: the directory on the shared file system where jobs live."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from towline.engine.doctor.facts import Facts, Finding, Kind, Login, Repair, cannot_tell, fails, ok
from towline.slurm.doctor import Room, parse_room

LITTLE_KIB = 1 << 20
"""Less than 1 GiB (in KiB) free is too little for a job's results."""
LITTLE_INODES = 1000


def root(facts: Facts) -> Sequence[Finding]:
    """On each login host the root is there, or can be made, is the user's own, and can be written."""
    return [_root(facts.profile.root, login, facts.setting("root")) for login in facts.reached] or [_nothing("root")]


def root_shared(facts: Facts) -> Sequence[Finding]:
    """All login hosts see the same root."""
    seen = {login.host: login.answer.fact("root", "probe") for login in facts.reached}
    if len(facts.logins) < 2:
        return [ok("root-shared", "there is one login host")]
    if len(seen) < 2 or "written" not in seen.values():
        return [cannot_tell("root-shared", "fewer than two login hosts could be compared")]
    others = [host for host, probe in seen.items() if probe == "unseen"]
    if others:
        writer = next(host for host, probe in seen.items() if probe == "written")
        fix = f"{facts.setting('root')} a directory on the file system that all hosts share (see df)."
        evidence = f"what {writer} writes below {facts.profile.root} is not seen on {', '.join(others)}"
        return [fails("root-shared", Kind.STORAGE, evidence, fix)]
    return [ok("root-shared", f"the same on {', '.join(seen)}")]


def quota(facts: Facts) -> Sequence[Finding]:
    """The user's quota is not used up."""
    if not facts.answer:
        return [_nothing("quota")]
    reply = facts.answer.reply("quota")
    if reply is None or not (reply.out.strip() or reply.ok):
        return [cannot_tell("quota", "the login host has no command that tells")]
    over = [line.strip() for line in reply.out.splitlines() if re.search(r"\d\*", line)]
    if over:
        fix = "Delete what you do not need, or ask the site for more; old jobs' results count, too."
        return [fails("quota", Kind.STORAGE, f"it is used up: {' '.join(over[0].split())}", fix)]
    return [ok("quota", "not used up" if reply.out.strip() else "none is set")]


def inodes(facts: Facts) -> Sequence[Finding]:
    """The file system has room for more files."""
    room = _room(facts)
    if room is None or room.free_inodes is None:
        return [_nothing("inodes") if not facts.answer else cannot_tell("inodes", "the file system does not tell")]
    # Some file systems make inodes as they go and say 0 of 0.
    if 0 < room.free_inodes < LITTLE_INODES:
        fix = "Delete files that you do not need, or set `root` in the profile to a directory elsewhere."
        return [fails("inodes", Kind.STORAGE, f"{room.free_inodes} files more can be made", fix)]
    return [ok("inodes", f"{room.free_inodes} free")]


def space(facts: Facts) -> Sequence[Finding]:
    """The file system has space."""
    room = _room(facts)
    if room is None or room.free_kib is None:
        return [_nothing("space") if not facts.answer else cannot_tell("space", "the file system does not tell")]
    shown = f"{room.free_kib / (1 << 20):.1f} GiB free on {_mount(facts)} ({room.kind})"
    if room.free_kib < LITTLE_KIB:
        fix = "Delete what you do not need, or set `root` in the profile to a directory on a file system with space."
        return [fails("space", Kind.STORAGE, shown, fix)]
    return [ok("space", shown)]


def _root(path: str, login: Login, give: str) -> Finding:
    facts = login.answer
    kind, near, shown = facts.fact("root", "is"), facts.fact("root", "near"), shlex.quote(path)
    room = parse_room(facts.fact("root", "room"))
    if kind == "other":
        fix = f"{give} a directory, or take the file away: mv {shown} {shown}.old"
        return fails("root", Kind.STORAGE, f"{path} is not a directory", fix, host=login.host)
    if kind == "directory" and facts.fact("root", "owner") not in (facts.fact("login", "uid"), ""):
        fix = f"{give} a directory of your own."
        return fails("root", Kind.STORAGE, f"{path} belongs to another user", fix, host=login.host)
    complaint = facts.complaints.get("root", "")
    if complaint or (room and not room.writable):
        return _unwritable(path, near, complaint, login, give)
    if kind == "directory" and _open(facts.fact("root", "mode")):
        fix = f"On the cluster: chmod 700 {shown}"
        repair = Repair("chmod-there", path)
        return fails("root", Kind.STORAGE, f"other users may write in {path}", fix, host=login.host, repair=repair)
    if kind == "directory":
        return ok("root", f"{path} can be written", host=login.host)
    if near in ("/", ""):
        fix = f"{give} a directory below one that is there."
        return fails("root", Kind.STORAGE, f"nothing of {path} is there", fix, host=login.host)
    return ok("root", f"{path} will be made in {near}", host=login.host)


def _unwritable(path: str, near: str, complaint: str, login: Login, give: str) -> Finding:
    user = login.answer.fact("login", "user")
    if near == path:
        fix = f"On the cluster: chmod u+rwx {shlex.quote(path)}"
    else:
        fix = f"{give} a directory where {user} may write, or ask the site for one below {near}."
    if re.search(r"quota|space", complaint, re.IGNORECASE):
        fix = "Delete what you do not need there, or ask the site for more space."
    if "Input/output" in complaint or complaint.startswith("I/O"):
        fix = "The file system is full or broken on this host: free space there (see `df`), or ask the site."
    if "ead-only" in complaint:
        fix = "The file system is mounted read-only on this host: ask the site, or take the host out of `hosts`."
    repair = Repair("chmod-there", path) if near == path and fix.startswith("On the cluster") else None
    evidence = f"{user} cannot write in {near}" + (f": {complaint}" if complaint else "")
    return fails("root", Kind.STORAGE, evidence, fix, host=login.host, repair=repair)


def _open(mode: str) -> bool:
    return bool(re.fullmatch(r"[0-7]+", mode)) and bool(int(mode, 8) & 0o022)


def _room(facts: Facts) -> Room | None:
    return parse_room(facts.answer.fact("root", "room")) if facts.answer else None


def _mount(facts: Facts) -> str:
    return facts.answer.fact("root", "mount").rpartition(" ")[2] if facts.answer else ""


def _nothing(name: str) -> Finding:
    return cannot_tell(name, "no login host was reached")
