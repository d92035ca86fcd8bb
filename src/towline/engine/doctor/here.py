"""Checks of this machine: the ssh client, the key, the agent."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from towline.engine.doctor.facts import Facts, Finding, KeyFile, Kind, Repair, by_hand, cannot_tell, fails, ok
from towline.models.plan import Verdict
from towline.remote.ssh.keys import Agent


def ssh_client(facts: Facts) -> Sequence[Finding]:
    """There is an OpenSSH client."""
    if facts.profile.transport == "local":
        return [ok("ssh-client", "not needed: the profile's transport is local")]
    if not facts.here.ssh:
        fix = (
            "Install OpenSSH's client: apt-get install openssh-client (Debian, Ubuntu) or dnf install openssh-clients."
        )
        return [fails("ssh-client", Kind.HERE, "there is no ssh on this machine", fix)]
    return [ok("ssh-client", facts.here.ssh)]


def key(facts: Facts) -> Sequence[Finding]:
    """The key that the profile names is there, private, and usable without questions."""
    file = facts.here.key
    if facts.profile.transport == "local":
        return []
    if file is not None:
        found = _key_file(file, facts.here.agent)
        return [_not_tried(facts, file) or found] if found.verdict is Verdict.OK else [found]
    tried = sorted({path for login in facts.logins for path in login.keys})
    # ssh passes over keys that others can read, and says so only with -v.
    opened = [each for each in facts.here.found if each.own and (each.mode or 0) & 0o077]
    if opened:
        return [_key_file(opened[0], facts.here.agent)]
    return [ok("key", f"the profile names none; ssh tries the agent's and {', '.join(tried) or 'its own'}")]


def _not_tried(facts: Facts, file: KeyFile) -> Finding | None:
    """What to say of a key that no login has shown to work: it may not be the one that is known there any more."""
    login = next((each for each in facts.logins if each.was_open), None)
    if login is None:
        return None
    alone = ("-o", "BatchMode=yes", "-o", "ControlPath=none", "-o", "IdentitiesOnly=yes")
    fix = f"Try it apart: {by_hand(login, facts.profile, *alone)} true"
    evidence = f"{file.path}, {file.fingerprint}: not tried, for the connection to {login.host} was open already"
    return cannot_tell("key", evidence, fix)


def _key_file(file: KeyFile, agent: Agent) -> Finding:
    shown = shlex.quote(file.path)
    if file.mode is None:
        fix = (
            "1. Put the key that the cluster knows there, or set identity_file in the profile to its file.\n"
            f"2. Only if you have no key yet, make one, and then install it there: ssh-keygen -t ed25519 -f {shown}"
        )
        return fails("key", Kind.HERE, f"there is no file {file.path}", fix)
    if not file.readable:
        fix = f"Give the file to this user, or a copy of it: install -m 600 {shown} NEWFILE, as a user who may read it."
        return fails("key", Kind.HERE, f"this user may not read {file.path}", fix)
    # A key that another user lends us (a mounted secret) can only be read through its group's or others' bits.
    if file.mode & (0o077 if file.own else 0o026):
        evidence = f"{file.path} is open to other users (mode {file.mode:o})"
        repair = Repair("chmod-here", file.path) if file.own else None
        return fails("key", Kind.HERE, evidence, f"chmod 600 {shown}", repair=repair)
    if not file.fingerprint:
        fix = "Set identity_file in the profile to a private key (its public one ends in .pub)."
        return fails("key", Kind.HERE, f"{file.path} holds no key", fix)
    if file.encrypted and file.fingerprint not in agent.keys:
        fix = f'eval "$(ssh-agent)"; ssh-add {shown}' if not agent.answers else f"ssh-add {shown}"
        return fails("key", Kind.HERE, f"{file.path} wants a passphrase, and no agent holds it", fix)
    held = "; an agent holds it" if file.fingerprint in agent.keys else ""
    return ok("key", f"{file.path}, mode {file.mode:o}, {file.fingerprint}{held}")


def agent(facts: Facts) -> Sequence[Finding]:
    """An agent that is configured can be asked."""
    found = facts.here.agent
    if facts.profile.transport == "local":
        return []
    if found.answers:
        count = len(found.keys)
        return [ok("agent", f"it holds {count} key{'' if count == 1 else 's'}")]
    if not found.socket:
        return [ok("agent", "there is none (SSH_AUTH_SOCK is not set)")]
    evidence = f"SSH_AUTH_SOCK is {found.socket}, and nothing answers there"
    if facts.here.key or facts.reached:
        return [cannot_tell("agent", f"{evidence}; logins do without it", "unset SSH_AUTH_SOCK")]
    fix = 'Start one and give it the key: eval "$(ssh-agent)"; ssh-add; or set identity_file in the profile.'
    return [fails("agent", Kind.HERE, evidence, fix)]
