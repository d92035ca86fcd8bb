"""A profile from a few answers, made on the lab."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.clinic import Clinic
from tests.lab.faulty import fault
from tests.lab.talk import converse
from tests.lab.terminal import COMMAND, Done
from towline.config.toml import read_toml
from towline.lab import Lab
from towline.lab.layout import ALICE

HOSTS = "login1.lab,login2.lab"


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path)
    yield found
    found.end()


def own_config(clinic: Clinic) -> dict[str, str]:
    """A configuration directory in which there is nothing yet, and a home of its own."""
    home = clinic.folder / "home"
    home.mkdir(exist_ok=True)
    return {"TOWLINE_CONFIG_DIR": str(clinic.folder / "config"), "HOME": str(home), "TOWLINE_CLUSTER": ""}


def setup(clinic: Clinic, *words: str) -> Done:
    """`towline setup` where nobody can be asked."""
    return clinic.terminal(**own_config(clinic))("setup", *words)


def access(clinic: Clinic, key: Path | None = None) -> tuple[str, ...]:
    path = key or clinic.lab.paths.key(ALICE)
    return ("--host", HOSTS, "--user", "alice", "--key", str(path), "--known-hosts", str(clinic.folder / "known"))


def written(clinic: Clinic, name: str = "lab") -> dict[str, object]:
    path = clinic.folder / "config" / "clusters.d" / f"{name}.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    return read_toml(path)["clusters"][name]


def test_a_profile_is_made_without_a_question_and_works(clinic: Clinic) -> None:
    image = "/lustre/images/python.sqsh"
    done = setup(clinic, *access(clinic), "--image", image, "--accept-host-keys", "--no-input", "--default")
    assert done.code == 0, done
    assert "SHA256:" in done.out
    assert "Nothing is broken." in done.out
    assert "names no image" not in done.out
    found = written(clinic)
    assert (found["root"], found["partition"]) == ("/lustre/alice/towline", "batch")
    assert "account" not in found
    ran = clinic.terminal(**own_config(clinic))("run", "--name", "labtest-setup", "--", "echo", "works")
    assert (ran.code, ran.out) == (0, "works\n"), ran


def test_an_unknown_host_key_is_shown_and_not_taken_unasked(clinic: Clinic) -> None:
    done = setup(clinic, *access(clinic), "--no-input")
    assert done.code == 77
    assert "SHA256:" in done.out
    assert done.err.index("--known-hosts FILE") < done.err.index("--accept-host-keys")
    assert not (clinic.folder / "known").exists()
    assert not (clinic.folder / "config" / "clusters.d").exists()


def test_what_is_missing_is_named_by_its_option(clinic: Clinic) -> None:
    done = setup(clinic, "--no-input")
    assert done.code == 64
    assert "--host is missing" in done.err


def test_a_value_that_cannot_be_right_is_refused_before_anything_is_done(clinic: Clinic) -> None:
    done = setup(clinic, "--host", "me@login1.lab", "--no-input")
    assert done.code == 64
    assert "write it as the setting `user`" in done.err


def test_a_key_is_made_when_told_to_and_what_to_do_with_it_is_said(clinic: Clinic) -> None:
    key = clinic.folder / "new" / "id"
    done = setup(clinic, *access(clinic, key), "--accept-host-keys", "--no-input")
    assert done.code == 78
    assert "--make-key" in done.err
    done = setup(clinic, *access(clinic, key), "--accept-host-keys", "--make-key", "--no-input")
    assert done.code == 77
    assert key.stat().st_mode & 0o777 == 0o600
    assert Path(f"{key}.pub").read_text().strip() in done.out
    assert "refused the key" in done.out
    assert f"cat {key}.pub" in done.out


@pytest.fixture
def agent(clinic: Clinic) -> Iterator[str]:
    """The socket of an agent that holds alice's key."""
    socket = str(clinic.folder / "agent")
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        env = {**os.environ, "SSH_AUTH_SOCK": socket}
        subprocess.run(["ssh-add", "-q", clinic.lab.paths.key(ALICE)], env=env, check=True)
        yield socket
        process.terminate()


def test_a_new_key_is_put_on_the_cluster_by_whatever_way_in_there_is(clinic: Clinic, agent: str) -> None:
    key = clinic.folder / "new" / "id"
    words = (*access(clinic, key), "--accept-host-keys", "--make-key", "--install-key", "--no-input")
    try:
        done = clinic.terminal(**own_config(clinic), SSH_AUTH_SOCK=agent)("setup", *words)
        assert done.code == 0, done
        public = Path(f"{key}.pub").read_text().strip()
        assert clinic.as_alice("cat .ssh/authorized_keys").splitlines().count(public) == 1
    finally:
        clinic.as_alice("sed -i '/ towline [a-z]*$/d' .ssh/authorized_keys")


def test_a_profile_is_not_written_over_unasked(clinic: Clinic) -> None:
    assert setup(clinic, *access(clinic), "--accept-host-keys", "--no-input").code == 0
    again = setup(clinic, *access(clinic), "--no-input", "--partition", "short")
    assert again.code == 78
    assert "--force" in again.err
    assert written(clinic)["partition"] == "batch"
    assert setup(clinic, *access(clinic), "--no-input", "--partition", "short", "--force").code == 0
    assert written(clinic)["partition"] == "short"


def test_an_alias_is_written_for_ssh(clinic: Clinic) -> None:
    done = setup(clinic, *access(clinic), "--accept-host-keys", "--no-input", "--alias", "mylab")
    assert done.code == 0, done
    text = (clinic.folder / "home" / ".ssh" / "config").read_text()
    assert text.startswith("Host mylab\n    HostName login1.lab\n    User alice\n")


def test_the_way_to_ask_for_gpus_and_the_places_are_found(clinic: Clinic) -> None:
    done = setup(clinic, *access(clinic), "site", "--accept-host-keys", "--no-input", "--partition", "cpu")
    assert done.code == 0, done
    assert "gpu_request" not in written(clinic, "site")


def asked(question: str) -> str:
    """A pattern for click's question and its default."""
    return re.escape(question) + r"[^\n]*[:\]] "


def test_questions_are_asked_at_a_terminal(clinic: Clinic) -> None:
    terminal = clinic.terminal(**own_config(clinic))
    words = ["setup", "--key", str(clinic.lab.paths.key(ALICE)), "--known-hosts", str(clinic.folder / "known")]
    answers = [
        ("Login hosts", HOSTS),
        ("User there", "alice"),
        ("Is that the host's fingerprint", "y"),
        ("Is that the host's fingerprint", "y"),
        ("Partition", "short"),
        ("Directory for jobs", ""),
        ("Write this profile", "y"),
    ]
    status, seen = converse([*COMMAND, *words], [(asked(what), answer) for what, answer in answers], terminal.env())
    assert status == 0, seen
    assert "SHA256:" in seen
    assert written(clinic)["partition"] == "short"


@pytest.fixture
def second_account(lab: Lab) -> Iterator[None]:
    """Alice has two Slurm accounts."""
    add = "sacctmgr -i add account labtest && sacctmgr -i add user alice account=labtest"
    lab.run_on("ctl", ["sh", "-c", add], check=True)
    yield
    remove = "sacctmgr -i remove user alice account=labtest; sacctmgr -i remove account labtest"
    lab.run_on("ctl", ["sh", "-c", remove], check=True)


def test_a_key_that_lies_elsewhere_is_asked_for_when_none_is_to_be_made(clinic: Clinic) -> None:
    key = clinic.lab.paths.key(ALICE)
    answers = [
        ("Make one", "n"),
        ("Private key to use", str(key)),
        ("Directory for jobs", ""),
        ("Write this profile", "y"),
    ]
    words = ["setup", "--host", HOSTS, "--user", "alice", "--partition", "short", "--accept-host-keys"]
    words += ["--known-hosts", str(clinic.folder / "known")]
    env = clinic.terminal(**own_config(clinic)).env()
    status, seen = converse([*COMMAND, *words], [(asked(what), answer) for what, answer in answers], env)
    assert status == 0, seen
    assert written(clinic)["identity_file"] == str(key)


def test_an_account_is_named_where_the_site_wants_one(clinic: Clinic, lab: Lab) -> None:
    with fault(lab, "account-needed"):
        done = setup(clinic, *access(clinic), "--accept-host-keys", "--no-input")
    assert (done.code, "Nothing is broken." in done.out) == (0, True), done
    assert written(clinic)["account"] == "research"


@pytest.mark.usefixtures("second_account")
def test_of_several_accounts_one_is_chosen_where_it_matters(clinic: Clinic, lab: Lab) -> None:
    words = (*access(clinic), "--accept-host-keys")
    with fault(lab, "account-needed"):
        done = setup(clinic, *words, "--no-input")
        assert (done.code, "Yours are: labtest, research." in done.err) == (64, True), done
        assert not (clinic.folder / "config" / "clusters.d").exists()
        answers = [(asked("Partition"), ""), (asked("Account (labtest, research)"), "research")]
        answers += [(asked("Directory for jobs"), ""), (asked("Write this profile"), "y")]
        status, seen = converse([*COMMAND, "setup", *words], answers, clinic.terminal(**own_config(clinic)).env())
    assert (status, "Nothing is broken." in seen) == (0, True), seen
    assert written(clinic)["account"] == "research"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [("--root", "/etc/towline", "cannot write in /etc"), ("--partition", "nosuch", "no partition nosuch")],
)
def test_a_value_that_the_cluster_refuses_is_not_written(clinic: Clinic, option: str, value: str, says: str) -> None:
    done = setup(clinic, *access(clinic), "--accept-host-keys", "--no-input", option, value)
    assert done.code == 64, done
    assert says in done.out
    assert f"Give `{option}`" in done.out
    assert "nothing was written" in done.err
    assert not (clinic.folder / "config" / "clusters.d").exists()


def test_a_site_without_a_container_runtime_gets_its_profile_and_the_reason(clinic: Clinic, lab: Lab) -> None:
    plugin = "/etc/slurm/plugstack.conf.d/pyxis.conf"
    for host in ("login1", "login2"):
        lab.run_on(host, ["mount", "--bind", "/dev/null", plugin], check=True)
    try:
        done = setup(clinic, *access(clinic), "--accept-host-keys", "--no-input")
    finally:
        for host in ("login1", "login2"):
            lab.run_on(host, ["umount", plugin], check=True)
    assert done.code == 71, done
    assert "Ask the site for Pyxis" in done.out
    assert written(clinic)["partition"] == "batch"
