"""The doctor where logins are in the way: keys, second factors, accounts, shells, channels; each fix is followed."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.clinic import Clinic, Findings, follow
from tests.lab.faulty import fault
from tests.lab.sshd import make_key
from tests.lab.talk import converse
from towline.lab import Lab
from towline.lab.faults.accounts import CODE
from towline.lab.layout import ALICE

HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
"""Where ssh looks for a person's configuration, whatever HOME says."""
AUTHORIZED = ".ssh/authorized_keys"


@pytest.fixture(autouse=True)
def ssh_folder() -> None:
    """~/.ssh is there, as ssh makes it for whoever has used it once; ssh-copy-id wants it."""
    (HOME / ".ssh").mkdir(mode=0o700, exist_ok=True)


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path, {"hosts": "login1.lab"})
    yield found
    found.end()


@pytest.fixture
def ssh_config() -> Iterator[Path]:
    """The person's ~/.ssh/config, which is as before afterwards."""
    path = HOME / ".ssh" / "config"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    before = path.read_bytes() if path.exists() else None
    yield path
    if before is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(before)


@contextmanager
def agent(clinic: Clinic, *keys: Path) -> Generator[dict[str, str]]:
    """An agent that holds keys, as the environment that leads to it."""
    socket = str(clinic.folder / f"agent-{len(keys)}")
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        env = {"SSH_AUTH_SOCK": socket}
        try:
            for key in keys:
                subprocess.run(["ssh-add", "-q", key], env={**os.environ, **env}, check=True)
            yield env
        finally:
            process.terminate()


@contextmanager
def authorized(clinic: Clinic) -> Generator[None]:
    """Alice's authorized keys are as before afterwards."""
    clinic.as_alice(f"cp -p {AUTHORIZED} .keys-before")
    try:
        yield
    finally:
        clinic.as_alice(f"cat .keys-before >{AUTHORIZED}; rm .keys-before")


def failing(found: Findings, name: str, code: int) -> str:
    """The evidence of the one check that fails."""
    assert (found.failed, found.done.code) == ([name], code), found.checks
    return found[name]["evidence"]


# --- Keys ---


def test_a_key_that_the_cluster_does_not_know_is_put_there(clinic: Clinic) -> None:
    key = make_key(clinic.folder / "new")
    clinic.settings["identity_file"] = str(key)
    found = clinic.visit()
    assert "refused the key (publickey)" in failing(found, "login", 77)
    assert follow(found.command("login", "what this prints")) == Path(f"{key}.pub").read_text()
    with agent(clinic, clinic.lab.paths.key(ALICE)) as other_way_in, authorized(clinic):
        follow(found.command("login", "Put the public key on the cluster"), **other_way_in)
        assert clinic.visit().failed == []


def test_a_key_that_is_not_there_and_a_configuration_that_ssh_cannot_read(clinic: Clinic, ssh_config: Path) -> None:
    right = str(clinic.key())
    clinic.settings["identity_file"] = f"{right}-gone"
    found = clinic.visit()
    assert (found.failed, found.done.code) == (["key"], 78)
    assert found["key"]["evidence"] == f"there is no file {right}-gone"
    assert "set identity_file in the profile to its file" in found["key"]["fix"]
    assert found["login"]["verdict"] == "cannot-tell"
    clinic.settings["identity_file"] = right
    ssh_config.write_text("Usr alice\n")
    found = clinic.visit()
    assert found.done.code == 78
    assert "Bad configuration option: usr" in found.done.out
    ssh_config.write_text("User alice\n")
    assert clinic.visit().failed == []


def test_a_key_with_a_passphrase_is_given_to_the_agent(clinic: Clinic) -> None:
    key = clinic.key()
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "sesame", "-P", "", "-f", key], check=True)
    ask = clinic.folder / "ask"
    ask.write_text("#!/bin/sh\necho sesame\n")
    ask.chmod(0o700)
    with agent(clinic) as env:
        found = clinic.visit(**env)
        assert found.failed[0] == "key"
        assert "wants a passphrase, and no agent holds it" in found["key"]["evidence"]
        follow(found["key"]["fix"], SSH_ASKPASS=str(ask), SSH_ASKPASS_REQUIRE="force", DISPLAY=":0", **env)
        assert clinic.visit(**env).failed == []


def test_an_agent_without_keys_and_one_that_is_gone(clinic: Clinic, ssh_config: Path) -> None:
    ssh_config.parent.mkdir(mode=0o700, exist_ok=True)
    ssh_config.write_text("Host login1.lab\n    IdentityFile /nonexistent\n")
    profile = Path(os.environ["TOWLINE_CONFIG_DIR"]) / "clusters.d" / "lab.toml"
    own = clinic.folder / "config" / "clusters.d" / "lab.toml"
    own.parent.mkdir(parents=True)
    own.write_text("".join(line for line in profile.read_text().splitlines(True) if "identity_file" not in line))
    config = {"TOWLINE_CONFIG_DIR": str(own.parent.parent)}
    with agent(clinic) as env:
        empty = clinic.visit(**config, **env)
        assert "the agent holds none" in failing(empty, "login", 77)
        assert "it holds 0 keys" in empty["agent"]["evidence"]
        subprocess.run(["ssh-add", "-q", clinic.lab.paths.key(ALICE)], env={**os.environ, **env}, check=True)
        assert clinic.visit(**config, **env).failed == []
    gone = clinic.visit(**config, **env)
    assert (gone.failed, gone.done.code) == (["agent", "login"], 78)
    assert "nothing answers there" in gone["agent"]["evidence"]


def test_an_open_connection_says_nothing_of_the_key(clinic: Clinic) -> None:
    terminal = clinic.terminal()

    def look() -> Findings:
        return Findings(terminal("doctor", "--json"))

    assert look()["key"]["verdict"] == "ok"
    with authorized(clinic):
        clinic.as_alice(f": >{AUTHORIZED}")
        found = look()
        assert found.failed == []
        assert found["key"]["verdict"] == "cannot-tell"
        assert "was open already" in found["key"]["evidence"]
        assert "was open already" in found["login"]["evidence"]
        apart = found.command("key", "Try it apart")
        with pytest.raises(AssertionError, match="Permission denied"):
            follow(apart)
    follow(apart)
    assert look().failed == []


# --- Accounts and second factors ---


def test_a_second_factor_is_given_once_by_hand(clinic: Clinic, lab: Lab, ssh_config: Path) -> None:
    with fault(lab, "second-factor"):
        found = clinic.visit()
        assert "wants a second factor (keyboard-interactive)" in failing(found, "login", 77)
        follow(found.command("login", "Let connections be shared"))
        by_hand = found.command("login", "leave the shell again")
        try:
            answers = [("Password: ", CODE), (r"\$ ", "exit")]
            status, shown = converse(["sh", "-c", by_hand], answers, dict(os.environ))
            assert status == 0, shown
            again = clinic.visit()
            assert again.failed == []
            assert "open already" in again["login"]["evidence"]
        finally:
            subprocess.run(["ssh", "-O", "exit", "alice@login1.lab"], capture_output=True, check=False)
    ssh_config.unlink()
    assert clinic.visit()["key"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("name", "evidence", "fix"),
    [
        ("account-expired", "Your account has expired", "renew the account alice"),
        ("password-expired", "the password has expired", "give it a new password: ssh -i"),
    ],
)
def test_what_has_expired(clinic: Clinic, lab: Lab, name: str, evidence: str, fix: str) -> None:
    with fault(lab, name):
        found = clinic.visit()
    assert evidence in failing(found, "login", 77)
    assert fix in found["login"]["fix"]
    assert clinic.visit().failed == []


# --- Shells and channels ---


def test_a_command_that_is_forced_on_a_key(clinic: Clinic) -> None:
    with authorized(clinic):
        clinic.as_alice(f"sed -i '1s/^/command=\"echo menu\" /' {AUTHORIZED}")
        found = clinic.visit()
        assert "it answered: menu" in failing(found, "shell", 77)
        right = found.command("shell", "end in").replace('"', '\\"')
        clinic.as_alice(f"{{ cat <<'END'; cat .keys-before; }} | tr -d '\\n' >{AUTHORIZED}\ncommand=\"{right}\" \nEND")
        assert clinic.visit().failed == []


def test_shells_of_other_kinds(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "login-shell", "fish"), fault(lab, "login-banner"):
        found = clinic.visit()
    assert (found.failed, found["shell"]["evidence"].rpartition("/")[2]) == ([], "fish")
    with fault(lab, "login-shell", "nologin"):
        found = clinic.visit()
    assert "This account is currently not available" in failing(found, "shell", 77)
    assert clinic.visit().failed == []


def test_channels_of_a_connection_are_counted(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "login-maxsessions", "1"):
        found = clinic.visit()
        assert "refuses a second channel" in failing(found, "max-sessions", 71)
        assert "MaxSessions" in found["max-sessions"]["fix"]
    with fault(lab, "login-maxsessions", "2"):
        assert clinic.visit()["max-sessions"]["evidence"].startswith("2 channels at a time")
    assert clinic.visit()["max-sessions"]["evidence"].startswith("4 channels and more")


def test_one_login_for_each_host_serves_everything(clinic: Clinic, lab: Lab) -> None:
    """doctor, run, logs, results and what comes after them, each a process of its own."""
    clinic.settings["hosts"] = "login1.lab,login2.lab"
    terminal = clinic.terminal()
    logs = [lab.paths.log / f"sshd-{host}.log" for host in ("login1", "login2")]

    def logins() -> list[int]:
        return [log.read_text().count("Accepted publickey") for log in logs]

    before = logins()
    assert terminal("doctor").code == 0
    after = logins()
    assert after == [count + 1 for count in before]
    job = terminal.submit(
        "--name", "labtest-logins", "--", "sh", "-c", "echo seen; echo kept >$TOWLINE_RESULTS_DIR/file"
    )
    assert terminal("logs", "-f", job).out == "seen\n"
    assert terminal("results", job, "--pull", str(clinic.folder / "home")).code == 0
    assert (clinic.folder / "home" / "file").read_text() == "kept\n"
    for words in (("status", job), ("ps",), ("doctor",)):
        assert terminal(*words).code == 0
    assert logins() == after
