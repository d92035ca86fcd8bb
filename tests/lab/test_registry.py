"""Registry credentials on the lab's cluster, and images asked for with them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.clinic import Clinic
from tests.lab.faulty import fault
from tests.lab.terminal import COMMAND, Done
from towline.lab import Lab

OPEN, LOCKED = "registry.lab:5000", "registry.lab:5001"
FILE = ".config/enroot/.credentials"


@pytest.fixture
def clinic(lab: Lab, tmp_path: Path) -> Iterator[Clinic]:
    found = Clinic(lab, tmp_path)
    found.as_alice(f"rm -f {FILE}")
    yield found
    found.as_alice(f"rm -f {FILE}")
    found.end()


@pytest.fixture
def password(lab: Lab) -> str:
    return (lab.paths.root / "keys" / "registry-password").read_text().strip()


def login(clinic: Clinic, *words: str, key: str, **environment: str) -> Done:
    """`towline registry login` with a key on stdin."""
    done = subprocess.run(
        [*COMMAND, "registry", "login", *words],
        input=key,
        env=clinic.terminal(**environment).env(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_an_image_that_anybody_may_pull(clinic: Clinic) -> None:
    found = clinic.terminal()("registry", "check", f"{OPEN}/demo:latest", "--json")
    assert found.code == 0, found
    assert found.json["manifest"]["digest"].startswith("sha256:")
    assert found.json["manifest"]["line"] == ""


def test_an_image_that_is_not_there(clinic: Clinic) -> None:
    found = clinic.terminal()("registry", "check", f"{OPEN}/demo:nosuch")
    assert found.code == 66
    assert "404" in found.err


def test_a_registry_that_is_not_there(clinic: Clinic) -> None:
    found = clinic.terminal()("registry", "check", "registry.lab:5999/demo")
    assert found.code == 69
    assert "onnect" in found.err


def test_a_login_makes_a_locked_image_pullable(clinic: Clinic, password: str) -> None:
    image = f"{LOCKED}/demo:latest"
    refused = clinic.terminal()("registry", "check", image)
    assert refused.code == 77
    assert f"fix: towline registry login {LOCKED} --user NAME" in refused.err
    done = login(clinic, LOCKED, "--user", "puller", key=password + "\n")
    assert done.code == 0, done
    assert f"It is right: {LOCKED} lets puller in." in done.out
    assert password not in done.out + done.err
    assert clinic.as_alice(f"stat -c %a {FILE}") == "600\n"
    found = clinic.terminal()("registry", "check", image)
    assert found.code == 0, found
    assert "as puller, by the line for registry.lab in /home/alice/.config/enroot/.credentials" in found.out
    ran = clinic.terminal()("run", "--image", image, "--name", "labtest-registry", "--", "true")
    assert ran.code == 0, ran


def test_a_wrong_key_is_refused_and_the_right_one_stays(clinic: Clinic, password: str) -> None:
    assert login(clinic, LOCKED, "--user", "puller", key=password).code == 0
    before = clinic.as_alice(f"cat {FILE}")
    for user, key in (("puller", "wr0ng"), ("nobody", password)):
        done = login(clinic, LOCKED, "--user", user, "--json", key=key)
        assert done.code == 77
        assert f"{LOCKED} does not take this key of {user}; nothing was written" in done.json["error"]["what"]
        assert key not in done.out + done.err
    assert clinic.as_alice(f"cat {FILE}") == before
    assert clinic.as_alice("ls .config/enroot") == "", "and nothing else is left there"


def test_a_key_that_cannot_be_tried_is_written_and_said_to_be_untried(clinic: Clinic, lab: Lab, password: str) -> None:
    with fault(lab, "registry-down"):
        done = login(clinic, LOCKED, "--user", "puller", key=password)
    assert done.code == 0
    assert f"It could not be tried: https://{LOCKED} was not reached" in done.out.replace("http:", "https:")
    assert "towline registry check IMAGE" in done.out
    anybody = login(clinic, OPEN, "--user", "me", "--json", key="k")
    assert anybody.json["registry"]["key"] == "untried"
    assert f"{OPEN} lets anybody in" in anybody.json["registry"]["why"]


def test_a_wrong_key_that_was_written_is_told_with_the_line_that_was_used(clinic: Clinic) -> None:
    assert login(clinic, LOCKED, "--user", "puller", "--untried", key="wrong").code == 0
    found = clinic.terminal()("registry", "check", f"{LOCKED}/demo:latest")
    assert found.code == 77
    assert "401 with the line `machine registry.lab login puller`" in found.err
    assert "wrong" not in found.err


def test_a_registry_that_works_with_tokens_from_another_host(clinic: Clinic, lab: Lab, password: str) -> None:
    """nvcr.io does: 401 with a realm, which sends clients on to authn.nvidia.com, which wants its own line."""
    image = f"{LOCKED}/demo:latest"

    def check() -> Done:
        return clinic.terminal()("registry", "check", image)

    with fault(lab, "registry-tokens"):
        missing = check()
        assert missing.code == 77
        assert f"/{FILE} has no line for ctl.lab. It sends clients to ctl.lab for a token." in missing.err
        fix = re.search(r"fix: towline registry login (\S+) --user NAME", missing.err)
        assert fix
        assert login(clinic, fix[1], "--user", "puller", key="wrong").code == 0
        wrong = check()
        assert wrong.code == 77
        assert "401 with the line `machine ctl.lab login puller`" in wrong.err
        assert login(clinic, fix[1], "--user", "puller", key=password).code == 0
        told = login(clinic, LOCKED, "--user", "puller", key=password)
        assert "sends clients to ctl.lab for a token, and the line for that host counts" in told.out
        right = check()
        assert right.code == 0, right
        assert "as puller, by the line for ctl.lab" in right.out
        assert "sha256:" in right.out
        assert password not in missing.err + wrong.err + right.out + right.err
    assert login(clinic, LOCKED, "--user", "puller", key=password).code == 0
    assert check().code == 0, "with passwords again"


def test_other_lines_stay_and_nvidias_authenticator_gets_its_own(clinic: Clinic) -> None:
    clinic.as_alice(
        f"mkdir -p .config/enroot; printf '# mine\\nmachine x login y password a b\\n' >{FILE}; chmod 644 {FILE}"
    )
    assert login(clinic, "nvcr.io", key="first").code == 0
    assert login(clinic, "nvcr.io", key="second").code == 0
    assert clinic.as_alice(f"cat {FILE}").splitlines() == [
        "# mine",
        "machine x login y password a b",
        "machine nvcr.io login $oauthtoken password second",
        "machine authn.nvidia.com login $oauthtoken password second",
    ]
    assert clinic.as_alice(f"stat -c %a {FILE}") == "600\n"


def test_the_key_of_nvidias_registry_may_come_from_the_environment(clinic: Clinic) -> None:
    done = login(clinic, "nvcr.io", key="", NGC_KEY="from-env")
    assert done.code == 0, done
    assert "from-env" in clinic.as_alice(f"cat {FILE}")
    assert "from-env" not in done.out + done.err


def test_where_enroot_is_told_to_look_counts(clinic: Clinic) -> None:
    clinic.settings["setup"] = "export ENROOT_CONFIG_PATH=/lustre/alice/labtest-enroot"
    try:
        assert login(clinic, LOCKED, "--user", "puller", "--untried", key="k3y").code == 0
        assert "k3y" in clinic.as_alice("cat /lustre/alice/labtest-enroot/.credentials")
    finally:
        clinic.as_alice("rm -rf /lustre/alice/labtest-enroot")


def test_without_a_key_nothing_is_written(clinic: Clinic) -> None:
    done = login(clinic, LOCKED, "--user", "puller", key="")
    assert done.code == 64
    assert clinic.as_alice(f"ls {FILE} 2>/dev/null || true") == ""
