"""Checks of the way to each login host: name, port, host key, login, shell, channels."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from towline.engine.doctor.facts import Facts, Finding, Kind, Login, by_hand, cannot_tell, fails, ok
from towline.remote.ssh.keys import shown_key
from towline.remote.ssh.sessions import WANTED

_METHODS = re.compile(r"Permission denied \(([^)]*)\)")
_TOO_OPEN = re.compile(r"Permissions 0*(\d+) for '(.+)' are too open")
"""What ssh says of a private key that it leaves out."""
_EXPIRED = re.compile(r"Your account has expired|This account is currently not available", re.IGNORECASE)
_PASSWORD = re.compile(r"Your password has expired|required to change your password", re.IGNORECASE)
_ONE_SHELL = "forced command or a restricted shell"
_FEW_SESSIONS = 2
_SSH_PORT = 22


def name(facts: Facts) -> Sequence[Finding]:
    """Each host's name has an address."""
    return [_name(login) for login in facts.logins]


def port(facts: Facts) -> Sequence[Finding]:
    """An SSH server answers at each host's port."""
    return [_port(login) for login in facts.logins]


def host_key(facts: Facts) -> Sequence[Finding]:
    """Each host shows the key that is known here."""
    return [_host_key(login) for login in facts.logins]


def login(facts: Facts) -> Sequence[Finding]:
    """Each host lets us in without a question."""
    return [_login(each, facts) for each in facts.logins]


def shell(facts: Facts) -> Sequence[Finding]:
    """Each host's login shell runs what it is told."""
    return [_shell(each) for each in facts.logins]


def max_sessions(facts: Facts) -> Sequence[Finding]:
    """Each host allows several channels on one connection."""
    if facts.profile.transport == "local":
        return []
    return [_max_sessions(each) for each in facts.logins]


def _name(login: Login) -> Finding:
    if login.config_error:
        fix = f"Mend ~/.ssh/config until this prints no error: ssh -G {shlex.quote(login.host)}"
        return fails(
            "name", Kind.HERE, f"ssh cannot read its configuration: {login.config_error}", fix, host=login.host
        )
    if login.proxied:
        return ok("name", f"{login.hostname}, over another host (~/.ssh/config)", host=login.host)
    if login.name_error:
        fix = (
            "1. See that the name is spelled right: `hosts` in the profile, HostName in ~/.ssh/config.\n"
            "2. Where the site wants a VPN, connect it.\n"
            f"3. Try again: getent hosts {shlex.quote(login.hostname)}"
        )
        return fails("name", Kind.NETWORK, f"{login.hostname} has no address: {login.name_error}", fix, host=login.host)
    return ok("name", f"{login.hostname} is {', '.join(login.addresses) or 'known'}", host=login.host)


def _port(login: Login) -> Finding:
    where = f"{login.hostname} port {login.port}"
    if login.proxied:
        return ok("port", "reached over another host", host=login.host) if login.reached else cannot_tell(
            "port", "the way goes over another host", f"ssh -v {shlex.quote(login.host)}", host=login.host
        )  # fmt: skip
    if login.config_error or login.name_error:
        return cannot_tell("port", "there is no address to try", host=login.host)
    if login.port_error:
        fix = (
            "1. Connect the VPN, or come from a network that the site lets in.\n"
            "2. Ask the site for the port, and set `port` in the profile if it is another.\n"
            f"3. Try again: ssh-keyscan -p {login.port} {login.hostname}"
        )
        return fails("port", Kind.NETWORK, f"{where}: {login.port_error}", fix, host=login.host)
    if login.banner and not login.banner.startswith("SSH-"):
        fix = "Ask the site for the SSH port and set `port` in the profile."
        return fails(
            "port", Kind.NETWORK, f"{where} answers, but not as SSH: {login.banner[:60]!r}", fix, host=login.host
        )
    return ok("port", f"{where}: {login.banner or 'open'}", host=login.host)


def _host_key(login: Login) -> Finding:
    kinds = ", ".join(f"{key.kind} {key.fingerprint}" for key in login.known)
    if login.reached:
        return ok("host-key", f"known: {kinds}" if kinds else "taken by ssh's configuration", host=login.host)
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in login.words:
        return _changed(login, kinds)
    if re.search(r"Host key verification failed|No \S+ host key is known", login.words):
        return _unknown(login)
    if login.words and shown_key(login.words):
        return ok("host-key", f"known: {kinds}" if kinds else "taken at this first connection", host=login.host)
    return cannot_tell("host-key", "the host did not show one", host=login.host)


def _changed(login: Login, kinds: str) -> Finding:
    shown = shown_key(login.words)
    now = f"{shown.kind} {shown.fingerprint}" if shown else "another key"
    file = re.search(r"Offending \S+ key in (\S+?):\d+", login.words)
    path = file[1] if file else login.known_file
    fix = (
        f"1. Ask the site whether the host's fingerprint is {shown.fingerprint if shown else now} now.\n"
        "2. If it is not, stop: somebody is between you and the host.\n"
        f"3. If it is, forget the old key: ssh-keygen -R {shlex.quote(login.key_name)} -f {shlex.quote(path)}"
    )
    evidence = f"it shows {now}, and {path} has {kinds or 'a different one'}"
    return fails("host-key", Kind.ACCESS, evidence, fix, host=login.host)


def _unknown(login: Login) -> Finding:
    shown = shown_key(login.words)
    now = f"{shown.kind} {shown.fingerprint}" if shown else "a key"
    kind = f"-t {shown.kind.lower().partition('-')[0]} " if shown else ""
    fix = (
        f"1. Ask the site whether the host has the fingerprint {shown.fingerprint if shown else 'that ssh shows'}.\n"
        f"2. If it has, take the key: ssh-keyscan {kind}-p {login.port} {login.hostname} >>{login.known_file}"
    )
    return fails("host-key", Kind.ACCESS, f"it shows {now}, and no key of it is known here", fix, host=login.host)


def _login(login: Login, facts: Facts) -> Finding:
    who = f"{login.user}@{login.hostname}"
    if login.reached:
        user = login.answer.fact("login", "user") or login.user
        over = ", over a connection that was open already" if login.was_open else ""
        where = login.answer.fact("login", "host") or login.hostname
        return ok("login", f"in as {user} on {where}{over}", host=login.host)
    if login.config_error or login.name_error or login.port_error:
        return cannot_tell("login", "the host was not reached", host=login.host)
    if _ONE_SHELL in login.problem:
        return ok("login", f"in as {login.user}", host=login.host)
    if found := _METHODS.search(login.words):
        return _refused(login, found[1], who, facts)
    if found := _EXPIRED.search(login.words):
        fix = f"Ask the site to renew the account {login.user}."
        return fails("login", Kind.ACCESS, f"{who}: {found[0]}", fix, host=login.host)
    if _PASSWORD.search(login.words):
        fix = f"Log in by hand and give it a new password: {by_hand(login, facts.profile)}"
        return fails("login", Kind.ACCESS, f"{who}: the password has expired", fix, host=login.host)
    if "Too many authentication failures" in login.words:
        fix = "Set identity_file in the profile to the key for this cluster, so that no other is offered."
        return fails("login", Kind.ACCESS, f"{who} refused after too many keys", fix, host=login.host)
    if "host-key" in _failing(_host_key(login)):
        return cannot_tell("login", "the host's key was not accepted", host=login.host)
    return fails(
        "login",
        Kind.NETWORK,
        f"{who}: {login.problem or 'no login'}",
        by_hand(login, facts.profile, "-v"),
        host=login.host,
    )


def _failing(finding: Finding) -> str:
    return finding.id if finding.fix else ""


def _refused(login: Login, methods: str, who: str, facts: Facts) -> Finding:
    if found := _TOO_OPEN.search(login.words):
        evidence = f"{who}: ssh did not offer the key {found[2]}, which other users can open (mode {found[1]})"
        return fails("login", Kind.ACCESS, evidence, f"chmod 600 {shlex.quote(found[2])}", host=login.host)
    if "partial success" in login.words or ("publickey" not in methods and "keyboard-interactive" in methods):
        block = f"Host {login.host}\\n    ControlMaster auto\\n    ControlPath ~/.ssh/cm-%%C\\n    ControlPersist 8h\\n"
        fix = (
            f"1. Let connections be shared: mkdir -p -m 700 ~/.ssh && printf {shlex.quote(block)} >>~/.ssh/config\n"
            f"2. Log in by hand, with the code, and leave the shell again: {by_hand(login, facts.profile)}\n"
            "3. Run this again: it goes over that connection, which stays for 8 hours after its last use."
        )
        return fails("login", Kind.ACCESS, f"{who} wants a second factor ({methods})", fix, host=login.host)
    if "publickey" not in methods:
        fix = "Ask the site how programs log in: it takes no keys."
        return fails("login", Kind.ACCESS, f"{who} takes no keys, only {methods}", fix, host=login.host)
    if facts.here.key and facts.here.key.mode is None:
        return cannot_tell("login", f"{who} wants a key, and the profile's is not there to offer", host=login.host)
    if not (facts.here.key or facts.here.found or facts.here.agent.keys):
        key = "~/.ssh/id_ed25519"
        holds = "the agent holds none" if facts.here.agent.answers else "there is no agent"
        evidence = (
            f"{who} wants a key, and there is none to offer: {holds}, and none of the files that ssh tries is there"
        )
        fix = (
            "1. If you have a key for this cluster elsewhere, set identity_file in the profile to it.\n"
            f"2. If you have none, make one: ssh-keygen -t ed25519 -f {key}\n"
            f"3. Put the public key on the cluster: {_copy_key(key, login, facts)}"
        )
        return fails("login", Kind.ACCESS, evidence, fix, host=login.host)
    return fails("login", Kind.ACCESS, f"{who} refused the key ({methods})", _install(login, facts), host=login.host)


def _install(login: Login, facts: Facts) -> str:
    found = [facts.here.key] if facts.here.key else list(facts.here.found)
    key = shlex.quote(found[0].path) if found else "FILE"
    return (
        f"1. See that {login.user!r} is your user name there.\n"
        f"2. Put the public key on the cluster: {_copy_key(key, login, facts)}\n"
        f"3. Where the site has a page for keys, paste there what this prints: cat {key}.pub"
    )


def _copy_key(key: str, login: Login, facts: Facts) -> str:
    port = f"-p {login.port} " if login.port != _SSH_PORT else ""
    known = facts.profile.known_hosts_file
    file = f"-o UserKnownHostsFile={shlex.quote(str(known))} " if known else ""
    return f"ssh-copy-id {port}{file}-i {key}.pub {login.user}@{login.host}"


def _shell(login: Login) -> Finding:
    if login.reached:
        if not login.answer.complete:
            fix = "See that the login host's temporary directory has space: df -h /tmp"
            return fails("shell", Kind.CLUSTER, "its answer broke off", fix, host=login.host)
        return ok("shell", login.answer.fact("login", "shell") or "a shell", host=login.host)
    if _ONE_SHELL in login.problem:
        fix = (
            "Ask the site for a login host where commands can be run, or have the command= of your key's line in "
            '~/.ssh/authorized_keys end in: exec sh -c "$SSH_ORIGINAL_COMMAND"'
        )
        return fails("shell", Kind.ACCESS, login.problem, fix, host=login.host)
    return cannot_tell("shell", "there is no login", host=login.host)


def _max_sessions(login: Login) -> Finding:
    if not login.reached:
        return cannot_tell("max-sessions", "there is no login", host=login.host)
    if login.sessions is None:
        return cannot_tell("max-sessions", "not tried; the limit is found while working", host=login.host)
    if login.sessions < _FEW_SESSIONS:
        fix = (
            f"Ask the site to set MaxSessions in sshd_config on {login.hostname} to 10 (sshd's default). "
            "Until then calls wait for each other."
        )
        evidence = "the server refuses a second channel on a connection"
        return fails("max-sessions", Kind.CLUSTER, evidence, fix, host=login.host)
    more = "" if login.sessions < WANTED else " and more"
    return ok("max-sessions", f"{login.sessions} channels{more} at a time on a connection", host=login.host)
