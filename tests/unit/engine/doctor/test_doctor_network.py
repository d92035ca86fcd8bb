"""Checks of this machine and of the way to the login hosts: facts in, verdict and fix out."""

from __future__ import annotations

import pytest

from tests.unit.engine.doctor.healthy import KEY, PRINT, facts, finding, login, unreached, verdicts
from towline.engine.doctor.checks import examine, exit_status
from towline.engine.doctor.facts import Here, KeyFile, Kind, Repair
from towline.models.plan import Verdict
from towline.remote.ssh.keys import Agent

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
debug1: Server host key: ssh-ed25519 SHA256:new
Offending ED25519 key in /home/me/.ssh/known_hosts:3
Host key verification failed.
"""
UNKNOWN = """\
debug1: Server host key: ssh-ed25519 SHA256:new
No ED25519 host key is known for login1.alps and you have requested strict checking.
Host key verification failed.
"""
SHOWN = "debug1: Server host key: ssh-ed25519 SHA256:known\n"


def test_nothing_is_wrong_with_a_healthy_cluster() -> None:
    assert set(verdicts(facts()).values()) == {Verdict.OK}
    assert exit_status(examine(facts())) == 0


@pytest.mark.parametrize(
    ("key", "agent", "evidence", "fix"),
    [
        (KeyFile(KEY), Agent(), "there is no file", f"ssh-keygen -t ed25519 -f {KEY}"),
        (KeyFile(KEY, 0o644, fingerprint=PRINT), Agent(), "open to other users (mode 644)", f"chmod 600 {KEY}"),
        (KeyFile("/k ey", 0o640, fingerprint=PRINT), Agent(), "mode 640", "chmod 600 '/k ey'"),
        (KeyFile(KEY, 0o600, readable=False), Agent(), "may not read", "install -m 600"),
        (KeyFile(KEY, 0o600), Agent(), "holds no key", "identity_file"),
        (KeyFile(KEY, 0o600, fingerprint=PRINT, encrypted=True), Agent(), "wants a passphrase", f"ssh-add {KEY}"),
    ],
)
def test_keys_that_cannot_be_used(key: KeyFile, agent: Agent, evidence: str, fix: str) -> None:
    found = finding("key", facts(here=Here("OpenSSH_9.2", key, agent)))
    assert found.verdict is Verdict.FAILS
    assert evidence in found.evidence
    assert fix in found.fix
    assert found.kind is Kind.HERE


def test_a_key_that_is_open_can_be_made_private() -> None:
    key = KeyFile(KEY, 0o644, fingerprint=PRINT)
    assert finding("key", facts(here=Here("OpenSSH", key))).repair == Repair("chmod-here", KEY)


@pytest.mark.parametrize(
    "key",
    [
        KeyFile(KEY, 0o400, fingerprint=PRINT),
        KeyFile(KEY, 0o440, own=False, fingerprint=PRINT),
        KeyFile(KEY, 0o600, fingerprint=PRINT, encrypted=True),
    ],
)
def test_keys_that_can_be_used(key: KeyFile) -> None:
    assert finding("key", facts(here=Here("OpenSSH", key, Agent("/s", True, (PRINT,))))).verdict is Verdict.OK


def test_a_key_that_ssh_would_pass_over_is_told_though_the_profile_names_none() -> None:
    good, open_one = KeyFile("/h/id_rsa", 0o600, fingerprint=PRINT), KeyFile("/h/id_ed25519", 0o644, fingerprint=PRINT)
    assert finding("key", facts(here=Here("OpenSSH", found=(good,)))).verdict is Verdict.OK
    found = finding("key", facts(here=Here("OpenSSH", found=(good, open_one))))
    assert (found.verdict, found.fix) == (Verdict.FAILS, "chmod 600 /h/id_ed25519")


def test_without_ssh_nothing_goes() -> None:
    found = finding("ssh-client", facts(here=Here("")))
    assert found.verdict is Verdict.FAILS
    assert "openssh-client" in found.fix


def test_a_dead_agent_matters_only_where_it_is_needed() -> None:
    dead = Here("OpenSSH", None, Agent("/gone", False))
    assert finding("agent", facts(here=dead)).verdict is Verdict.CANNOT_TELL
    assert finding("agent", facts(unreached(), here=dead)).verdict is Verdict.FAILS


def test_a_name_without_an_address() -> None:
    found = facts(unreached(addresses=(), name_error="Name or service not known"))
    assert finding("name", found).verdict is Verdict.FAILS
    assert finding("port", found).verdict is Verdict.CANNOT_TELL
    assert exit_status(examine(found)) == 69


def test_a_broken_ssh_configuration_is_a_setting() -> None:
    found = facts(unreached(config_error="line 3: Bad configuration option: usr"))
    assert "ssh -G login1" in finding("name", found).fix
    assert exit_status(examine(found)) == 78


def test_a_port_that_is_closed_and_one_that_is_no_ssh_server() -> None:
    closed = finding("port", facts(unreached(port_error="Connection refused", port=2222)))
    assert (closed.verdict, "port 2222: Connection refused" in closed.evidence) == (Verdict.FAILS, True)
    web = finding("port", facts(unreached(banner="HTTP/1.1 400 Bad Request")))
    assert "not as SSH" in web.evidence


def test_a_host_behind_another_is_not_asked_for_its_port() -> None:
    assert finding("port", facts(login(proxied=True))).verdict is Verdict.OK
    assert finding("port", facts(unreached(proxied=True))).verdict is Verdict.CANNOT_TELL


def test_a_changed_host_key_shows_both_fingerprints() -> None:
    found = finding("host-key", facts(unreached(CHANGED, port=2222)))
    assert found.verdict is Verdict.FAILS
    assert "SHA256:new" in found.evidence
    assert "SHA256:known" in found.evidence
    assert "ssh-keygen -R '[login1.alps]:2222' -f /home/me/.ssh/known_hosts" in found.fix
    assert found.repair is None
    assert exit_status(examine(facts(unreached(CHANGED)))) == 77


def test_an_unknown_host_key_shows_its_fingerprint() -> None:
    found = finding("host-key", facts(unreached(UNKNOWN, known=())))
    assert found.verdict is Verdict.FAILS
    assert "SHA256:new" in found.evidence
    assert "ssh-keyscan -t ed25519 -p 22 login1.alps >>/home/me/.ssh/known_hosts" in found.fix
    assert finding("login", facts(unreached(UNKNOWN))).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("words", "evidence", "fix"),
    [
        ("Permission denied (publickey).", "refused the key (publickey)", f"ssh-copy-id -i {KEY}.pub me@login1\n"),
        (
            'Authenticated using "publickey" with partial success.\nPermission denied (keyboard-interactive).',
            "second factor",
            "ControlMaster auto",
        ),
        (
            "Permission denied (keyboard-interactive).",
            "second factor",
            "and leave the shell again: ssh me@",
        ),
        ("Permission denied (password).", "takes no keys", "Ask the site"),
        (
            "Permissions 0644 for '/k k' are too open.\nPermission denied (publickey).",
            "ssh did not offer the key /k k, which other users can open (mode 644)",
            "chmod 600 '/k k'",
        ),
        ("Your account has expired; please contact your administrator", "has expired", "renew the account me"),
        ("WARNING: Your password has expired.\n", "password has expired", "new password: ssh me@login1"),
        ("Received disconnect: Too many authentication failures", "too many keys", "identity_file"),
    ],
)
def test_logins_that_are_refused(words: str, evidence: str, fix: str) -> None:
    found = finding("login", facts(unreached(SHOWN + words)))
    assert found.verdict is Verdict.FAILS
    assert evidence in found.evidence
    assert fix in found.fix
    assert found.kind is Kind.ACCESS


def test_a_login_that_fails_for_another_reason_is_looked_at_by_the_profiles_own_name() -> None:
    found = finding("login", facts(unreached(SHOWN, host="alias", hostname="login1.alps", problem="closed")))
    assert found.fix == "ssh -v me@alias"


def test_a_login_by_hand_has_what_the_profile_sets() -> None:
    words = "Authenticated with partial success.\nPermission denied (keyboard-interactive)."
    found = facts(unreached(words, host="alias"), identity_file="/k", port=2222, known_hosts_file="/known", user="me")
    fix = finding("login", found).fix
    assert "ssh -p 2222 -i /k -o UserKnownHostsFile=/known me@alias\n" in fix
    assert "printf 'Host alias\\n" in fix


def test_a_login_without_the_profiles_key_says_nothing_of_that_key() -> None:
    found = facts(unreached("Permission denied (publickey)."), here=Here("OpenSSH", KeyFile(KEY), Agent()))
    assert finding("login", found).verdict is Verdict.CANNOT_TELL
    assert finding("key", found).fix.startswith("1. Put the key that the cluster knows there")


def test_without_any_key_a_new_one_is_made() -> None:
    found = facts(unreached("Permission denied (publickey)."), here=Here("OpenSSH", None, Agent("/s", True)))
    assert "the agent holds none" in finding("login", found).evidence
    assert "ssh-keygen -t ed25519" in finding("login", found).fix


def test_a_forced_command_is_the_shells_fault() -> None:
    problem = "the account has a forced command or a restricted shell there; it answered: Hello"
    found = facts(unreached(SHOWN, problem=problem))
    assert finding("login", found).verdict is Verdict.OK
    assert "SSH_ORIGINAL_COMMAND" in finding("shell", found).fix


@pytest.mark.parametrize(
    ("sessions", "verdict", "evidence"),
    [
        (1, Verdict.FAILS, "refuses a second channel"),
        (2, Verdict.OK, "2 channels at a time"),
        (4, Verdict.OK, "4 channels and more at a time"),
        (None, Verdict.CANNOT_TELL, "not tried"),
    ],
)
def test_channels_of_a_connection(sessions: int | None, verdict: Verdict, evidence: str) -> None:
    found = finding("max-sessions", facts(login(sessions=sessions)))
    assert found.verdict is verdict
    assert evidence in found.evidence


def test_a_connection_that_was_open_already_says_nothing_of_the_key() -> None:
    here = Here("OpenSSH", KeyFile(KEY, 0o600, fingerprint=PRINT))
    found = facts(login(was_open=True), here=here, port=2222, identity_file=KEY)
    assert "open already" in finding("login", found).evidence
    assert finding("key", found).verdict is Verdict.CANNOT_TELL
    assert finding("key", found).fix.endswith(f"-o IdentitiesOnly=yes -p 2222 -i {KEY} me@login1 true")


def test_one_dead_host_does_not_hide_what_the_other_tells() -> None:
    found = facts(unreached(port_error="No route to host"), login("login2"))
    assert finding("port", found, "login1").verdict is Verdict.FAILS
    assert finding("slurm", found).verdict is Verdict.OK
    assert finding("root", found).verdict is Verdict.OK


def test_without_any_host_the_rest_cannot_be_told_and_is_not_called_broken() -> None:
    found = examine(facts(unreached(name_error="no")))
    assert [each.id for each in found if each.verdict is Verdict.FAILS] == ["name"]
    assert {"slurm", "pyxis", "root", "credentials", "space"} <= {
        each.id for each in found if each.verdict is Verdict.CANNOT_TELL
    }


def test_every_failure_has_a_fix() -> None:
    broken = [
        facts(unreached(CHANGED)),
        facts(unreached(UNKNOWN)),
        facts(unreached("Permission denied (publickey).")),
        facts(unreached(name_error="no")),
    ]
    assert [each for found in broken for each in examine(found) if each.verdict is Verdict.FAILS and not each.fix] == []
