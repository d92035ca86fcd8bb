"""Importing images: `enroot import`, and Pyxis importing by itself, from the lab's open and locked registries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.login import on_login, srun
from towline.lab import Lab

MINE = "/lustre/alice/runtime-tests"
HOME_CREDENTIALS = "/home/alice/.config/enroot/.credentials"
OPEN = "registry.lab:5000"
LOCKED = "registry.lab:5001"


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    on_login(lab, script="rm -rf ~/.config/enroot *.sqsh")
    yield
    on_login(lab, script="rm -rf ~/.config/enroot *.sqsh")


def give_credentials(lab: Lab, password: str) -> None:
    """As the user would: a file of the user's own, written through stdin."""
    write = ["sh", "-c", f"umask 077; mkdir -p ~/.config/enroot; cat >{HOME_CREDENTIALS}"]
    line = f"machine registry.lab login puller password {password}\n"
    assert lab.run_on("login1", write, user="alice", stdin=line).returncode == 0


def right_password(lab: Lab) -> str:
    return lab.paths.registry_password.read_text().strip()


def test_an_imported_image_runs(lab: Lab) -> None:
    done = on_login(lab, "enroot", "import", "-o", "x.sqsh", f"docker://{OPEN}#demo:latest")
    assert done.returncode == 0, done.stderr
    assert "[INFO] Permission granted\n" in done.stderr
    ran = srun(lab, "--container-image=./x.sqsh", "sh", "-c", 'cat /etc/os-release; echo "$LAB_IMAGE"; pwd')
    assert 'NAME="LabBusybox"' in ran.stdout
    assert ran.stdout.endswith("lab\n/\n")


def test_a_slash_may_stand_before_the_repository(lab: Lab) -> None:
    assert on_login(lab, "enroot", "import", f"docker://{OPEN}/demo:latest").returncode == 0
    assert on_login(lab, "test", "-s", "demo+latest.sqsh").returncode == 0


def test_the_version_is_the_one_it_stands_for(lab: Lab) -> None:
    assert on_login(lab, "enroot", "version").stdout == "4.1.2\n"


def test_an_existing_file_is_never_replaced(lab: Lab) -> None:
    on_login(lab, script="echo precious >x.sqsh")
    done = on_login(lab, "enroot", "import", "-o", "x.sqsh", f"docker://{OPEN}#demo:latest")
    assert (done.returncode, done.stderr) == (1, f"[ERROR] File already exists: {MINE}/x.sqsh\n")
    assert on_login(lab, "cat", "x.sqsh").stdout == "precious\n"


@pytest.mark.parametrize("repository", ["demo:nosuchtag", "nosuch:latest"])
def test_what_a_registry_does_not_have(lab: Lab, repository: str) -> None:
    name, _, tag = repository.partition(":")
    done = on_login(lab, "enroot", "import", "-o", "z.sqsh", f"docker://{OPEN}#{repository}")
    missing = f"[ERROR] URL http://{OPEN}/v2/{name}/manifests/{tag} returned error code: 404 Not Found\n"
    assert (done.returncode, done.stderr) == (1, f"[INFO] Querying registry for permission grant\n{missing}")


@pytest.mark.parametrize("output", ["/nope/z.sqsh", "/root/z.sqsh"])
def test_a_folder_that_cannot_be_written(lab: Lab, output: str) -> None:
    done = on_login(lab, "enroot", "import", "-o", output, f"docker://{OPEN}#demo:latest")
    assert (done.returncode, done.stderr) == (1, f"[ERROR] No such file or directory: {output}\n")


def test_a_registry_that_is_not_there(lab: Lab) -> None:
    done = on_login(lab, "enroot", "import", "docker://registry.lab:5999#demo:latest")
    assert done.returncode == 7
    assert "curl: (7) Failed to connect to registry.lab port 5999" in done.stderr


def test_without_credentials_a_locked_registry_says_nothing(lab: Lab) -> None:
    done = on_login(lab, "enroot", "import", "-o", "z.sqsh", f"docker://{LOCKED}#demo:latest")
    assert done.returncode == 1
    assert done.stderr.endswith("[INFO] Authenticating with user: <anonymous>\n")


@pytest.mark.parametrize("user", ["", "puller@"])
def test_with_a_wrong_password_a_locked_registry_says_nothing(lab: Lab, user: str) -> None:
    give_credentials(lab, "wrong")
    done = on_login(lab, "enroot", "import", "-o", "z.sqsh", f"docker://{user}{LOCKED}#demo:latest")
    assert done.returncode == 1
    using = f"[INFO] Authenticating with user: puller\n[INFO] Using credentials from file: {HOME_CREDENTIALS}\n"
    assert done.stderr.endswith(using)
    assert on_login(lab, "test", "-e", "z.sqsh").returncode == 1


@pytest.mark.parametrize("user", ["", "puller@"])
def test_with_the_right_password_a_locked_registry_gives_the_image(lab: Lab, user: str) -> None:
    give_credentials(lab, right_password(lab))
    done = on_login(lab, "enroot", "import", "-o", "z.sqsh", f"docker://{user}{LOCKED}#demo:latest")
    assert done.returncode == 0, done.stderr
    assert right_password(lab) not in done.stderr + done.stdout
    assert 'NAME="LabBusybox"' in srun(lab, "--container-image=./z.sqsh", "cat", "/etc/os-release").stdout


def test_an_import_leaves_nothing_but_the_image(lab: Lab) -> None:
    give_credentials(lab, right_password(lab))
    script = (
        "rm -rf scratch; mkdir scratch; export TMPDIR=$PWD/scratch;"
        f" enroot import -o x.sqsh docker://{LOCKED}#demo:latest;"
        f" enroot import -o z.sqsh docker://{LOCKED}#demo:nosuchtag; ls *.sqsh; ls -A scratch"
    )
    assert on_login(lab, script=script).stdout == "x.sqsh\n"


@pytest.mark.parametrize("image", [f"{OPEN}#python:3.11", f"docker://{OPEN}#python:3.11", f"{OPEN}/python:3.11"])
def test_pyxis_imports_by_itself(lab: Lab, image: str) -> None:
    done = srun(lab, f"--container-image={image}", "python3", "-c", "print(open('/etc/os-release').read())")
    assert 'NAME="LabPython"' in done.stdout
    assert done.stderr == f"pyxis: importing docker image: {image}\npyxis: imported docker image: {image}\n"


def test_pyxis_imports_with_the_users_credentials(lab: Lab) -> None:
    refused = srun(lab, f"--container-image={LOCKED}#demo:latest", "true")
    assert refused.returncode == 1
    assert "pyxis:     [INFO] Authenticating with user: <anonymous>\n" in refused.stderr
    give_credentials(lab, right_password(lab))
    assert srun(lab, f"--container-image={LOCKED}#demo:latest", "true").returncode == 0


FAILURES = [
    (
        f"{OPEN}#demo:nosuchtag",
        1,
        f"[ERROR] URL http://{OPEN}/v2/demo/manifests/nosuchtag returned error code: 404 Not Found",
    ),
    ("registry.lab:5999#demo:latest", 7, "curl: (7) Failed to connect to registry.lab port 5999 after"),
    ("foo bar", 3, "curl: (3) URL using bad/illegal format or missing URL"),
    (f"{OPEN}#De mo:la!test", 1, f"[ERROR] Invalid image reference: docker://{OPEN}#De mo:la!test"),
]


@pytest.mark.parametrize(("image", "code", "cause"), FAILURES)
def test_a_failed_import_says_what_pyxis_says(lab: Lab, image: str, code: int, cause: str) -> None:
    done = srun(lab, f"--container-image={image}", "true")
    assert done.returncode == 1
    lines = [line.partition(" error: ")[2] for line in done.stderr.splitlines()]
    assert f"pyxis: failed to import docker image: {image}" in lines
    assert any(line.endswith(f"failed with error code: {code}") for line in lines)
    assert any(line.startswith(f"pyxis:     {cause}") for line in lines)
    assert "spank: required plugin spank_pyxis.so: task_init() failed with rc=-1" in lines
