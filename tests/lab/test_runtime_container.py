"""Steps in containers: what Pyxis promises, the lab's stand-in keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.login import on_login, srun
from towline.lab import Lab
from towline.lab.layout import ALICE

BUSYBOX = "/lustre/images/busybox.sqsh"
PYTHON = "/lustre/images/python.sqsh"
MINE = "/lustre/alice/runtime-tests"
ACCOUNT = ALICE.uid


def in_busybox(lab: Lab, script: str, *options: str) -> str:
    """What a shell in the busybox image prints; it has to succeed."""
    done = srun(lab, f"--container-image={BUSYBOX}", *options, "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def folder(lab: Lab) -> str:
    """A folder of alice's on the shared disk with a file `f` that says `hello`."""
    on_login(lab, script="rm -rf d && mkdir d && echo hello >d/f")
    return f"{MINE}/d"


@pytest.mark.parametrize(("image", "name"), [(BUSYBOX, "LabBusybox"), (PYTHON, "LabPython")])
def test_a_step_runs_inside_the_image(lab: Lab, image: str, name: str) -> None:
    done = srun(lab, f"--container-image={image}", "sh", "-c", "cat /etc/os-release; command -v srun || echo no srun")
    assert f'NAME="{name}"' in done.stdout
    assert "no srun" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_python_has_its_standard_library(lab: Lab) -> None:
    program = "import asyncio, json, socket, sqlite3, ssl, multiprocessing; print(json.dumps([1]))"
    assert srun(lab, f"--container-image={PYTHON}", "python3", "-c", program).stdout == "[1]\n"


@pytest.mark.parametrize("code", [0, 1, 7, 126, 127, 200])
def test_the_exit_code_comes_back(lab: Lab, code: int) -> None:
    assert srun(lab, f"--container-image={BUSYBOX}", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize(("signal", "code"), [("KILL", 137), ("SEGV", 139)])
def test_a_deadly_signal_comes_back(lab: Lab, signal: str, code: int) -> None:
    assert srun(lab, f"--container-image={BUSYBOX}", "sh", "-c", f"kill -{signal} $$").returncode == code


def test_a_mount_is_writable_and_of_the_user(lab: Lab, folder: str) -> None:
    assert in_busybox(lab, "cat /data/f; echo new >/data/g", f"--container-mounts={folder}:/data") == "hello"
    assert on_login(lab, "stat", "-c", "%U", f"{folder}/g").stdout == "alice\n"


def test_a_mount_can_be_read_only(lab: Lab, folder: str) -> None:
    mount = f"--container-mounts={folder}:/data:ro"
    assert "Read-only file system" in in_busybox(lab, "touch /data/x 2>&1 || cat /data/f", mount)


def test_a_bare_path_is_mounted_where_it_is(lab: Lab, folder: str) -> None:
    assert in_busybox(lab, f"cat {folder}/f", f"--container-mounts={folder}") == "hello"


def test_an_apostrophe_in_a_path_means_nothing(lab: Lab, folder: str) -> None:
    name = f"{folder}/it's"
    lab.run_on("login1", ["mkdir", name], user="alice", check=True)
    lab.run_on("login1", ["cp", f"{folder}/f", name], user="alice", check=True)
    assert in_busybox(lab, "cat /data/f", f"--container-mounts={name}:/data") == "hello"


def test_mounts_are_made_in_their_order_and_files_get_a_place(lab: Lab, folder: str) -> None:
    mounts = (
        f"--container-mounts=/lustre/alice:/a/b,tmpfs:/a/b/runtime-tests/d,{folder}/f:/a/b/runtime-tests/d/new/copy"
    )
    assert in_busybox(lab, "cat /a/b/runtime-tests/d/new/copy; ls /a/b/runtime-tests/d", mounts).split() == [
        "hello",
        "new",
    ]


def test_a_link_in_a_mount_does_not_lead_out_of_the_container(lab: Lab, folder: str) -> None:
    on_login(lab, "ln", "-s", "/etc", f"{folder}/link")
    mounts = f"--container-mounts={folder}:/data,{folder}/f:/data/link/from-the-mount"
    assert in_busybox(lab, "cat /etc/from-the-mount", mounts) == "hello"
    assert on_login(lab, "ls", "/etc/from-the-mount").returncode != 0


def test_what_the_user_cannot_reach_is_not_mounted(lab: Lab) -> None:
    done = srun(lab, f"--container-image={BUSYBOX}", "--container-mounts=/root/secret:/data", "true")
    assert done.returncode == 1
    assert "enroot-mount: failed to mount: /root/secret" in done.stderr


def test_mount_points_are_not_made_where_the_user_may_not_write(lab: Lab) -> None:
    mounts = "--container-mounts=/lustre/images:/images,/lustre/alice:/images/new"
    done = srun(lab, f"--container-image={BUSYBOX}", mounts, "true")
    assert done.returncode == 1
    assert on_login(lab, "ls", "/lustre/images/new").returncode != 0


def test_the_image_is_read_only_unless_asked_otherwise(lab: Lab) -> None:
    assert "Read-only file system" in in_busybox(lab, "touch /x 2>&1 || true")
    assert "Read-only file system" in in_busybox(lab, "touch /x 2>&1 || true", "--container-readonly")


def test_a_writable_container_is_the_users_and_forgotten_afterwards(lab: Lab) -> None:
    changed = "echo more >>/etc/os-release; rm /bin/vi; touch /x; stat -c %u /x /bin/busybox"
    assert in_busybox(lab, changed, "--container-writable").split() == [str(ACCOUNT), str(ACCOUNT)]
    assert in_busybox(lab, "ls /bin/vi; grep -c more /etc/os-release || true") == "/bin/vi\n0"


def test_tmp_is_the_containers_own(lab: Lab) -> None:
    on_login(lab, "srun", "-N4", "-t1", "touch", "/tmp/labtest-of-the-node")
    assert in_busybox(lab, "touch /tmp/mine; ls /tmp") == "mine"
    on_login(lab, "srun", "-N4", "-t1", "rm", "/tmp/labtest-of-the-node")


def test_the_working_directory(lab: Lab) -> None:
    assert in_busybox(lab, "pwd") == "/"
    assert in_busybox(lab, "pwd", "--container-workdir=/etc") == "/etc"


def test_home_is_mounted_only_when_asked(lab: Lab) -> None:
    on_login(lab, script="echo mine >~/labtest-home")
    look = 'echo "$HOME"; cat "$HOME/labtest-home" 2>/dev/null || echo not here'
    assert in_busybox(lab, look).split("\n") == ["/home/alice", "not here"]
    assert in_busybox(lab, look, "--no-container-mount-home").split("\n") == ["/home/alice", "not here"]
    assert in_busybox(lab, look, "--container-mount-home").split("\n") == ["/home/alice", "mine"]
    on_login(lab, script="rm ~/labtest-home")


def test_the_jobs_environment_arrives_and_the_images_own_wins(lab: Lab) -> None:
    run = f"srun -t1 --container-image={BUSYBOX}"
    say = "sh -c 'echo $COLOUR $LAB_IMAGE $LC_ALL. $SLURM_PROCID'"
    given = "COLOUR=red LAB_IMAGE=host LC_ALL=C"
    assert on_login(lab, script=f"{given} {run} {say}").stdout == "red lab . 0\n"
    assert on_login(lab, script=f"{given} {run} --container-env=LAB_IMAGE,LC_ALL {say}").stdout == "red host C. 0\n"


def test_the_user_inside_is_the_user_outside(lab: Lab) -> None:
    assert in_busybox(lab, "id -u; id -un; id -g") == f"{ACCOUNT}\nalice\n{ACCOUNT}"


def test_the_user_can_be_root_inside_and_stays_the_user_outside(lab: Lab, folder: str) -> None:
    options = ("--container-remap-root", f"--container-mounts={folder}:/data")
    assert in_busybox(lab, "id -u; id -un; touch /data/made; stat -c %U /data/made", *options) == "0\nroot\nroot"
    assert on_login(lab, "stat", "-c", "%U", f"{folder}/made").stdout == "alice\n"


def test_a_batch_script_runs_in_a_container(lab: Lab) -> None:
    script = (
        f"rm -f c.out; sbatch --wait -t1 -o c.out --container-image={BUSYBOX} --wrap 'cat /etc/os-release; exit 7';"
        " echo $?; cat c.out"
    )
    done = on_login(lab, script=script)
    assert 'NAME="LabBusybox"' in done.stdout
    assert "\n7\n" in done.stdout


def test_the_tasks_of_a_node_share_one_container(lab: Lab) -> None:
    wait = 'touch /here$SLURM_PROCID; until [ "$(ls -d /here? | wc -l)" = 8 ]; do usleep 20000; done; echo met'
    done = srun(lab, "-N1", "-n8", f"--container-image={BUSYBOX}", "--container-writable", "sh", "-c", wait)
    assert done.stdout.split() == ["met"] * 8


def test_options_for_containers_without_one_are_ignored(lab: Lab) -> None:
    done = srun(lab, "--container-mounts=/lustre:/lustre", "true")
    assert done.returncode == 0
    ignored = "ignoring --container-mounts because neither --container-image nor --container-name is set"
    assert f"srun: error: pyxis: {ignored}" in done.stderr


@pytest.fixture(scope="module")
def broken_images(lab: Lab) -> None:
    copy = Path(BUSYBOX).name
    script = (
        "mkdir -p bad; head -c 4096 /dev/urandom >bad/random.sqsh; : >bad/empty.sqsh;"
        f" head -c 300000 {BUSYBOX} >bad/short.sqsh; cp {BUSYBOX} bad/{copy}; chmod 000 bad/{copy}"
    )
    assert on_login(lab, script=script).returncode == 0


CANNOT_CREATE = "pyxis: failed to create container filesystem for image: {image}"
FAILURES: list[tuple[list[str], int, list[str]]] = [
    (
        ["--container-image=/lustre/images/nope.sqsh"],
        1,
        [CANNOT_CREATE, "pyxis:     [ERROR] No such file or directory: /lustre/images/nope.sqsh"],
    ),
    (
        ["--container-image=./nope.sqsh"],
        1,
        [CANNOT_CREATE, f"pyxis:     [ERROR] No such file or directory: {MINE}/nope.sqsh"],
    ),
    (["--container-image=/lustre/images/"], 1, ["pyxis:     [ERROR] No such file or directory: /lustre/images"]),
    (["--container-image=./bad/random.sqsh"], 1, [f"[ERROR] Invalid image format: {MINE}/bad/random.sqsh"]),
    (["--container-image=./bad/empty.sqsh"], 1, [f"[ERROR] Invalid image format: {MINE}/bad/empty.sqsh"]),
    (["--container-image=./bad/busybox.sqsh"], 1, [f"[ERROR] Invalid image format: {MINE}/bad/busybox.sqsh"]),
    (["--container-image=./bad/short.sqsh"], 1, ["FATAL ERROR: File system corruption detected"]),
    (
        [f"--container-image={BUSYBOX}", "--container-mounts=/nope:/data"],
        1,
        [
            "pyxis: --container-mounts: source path does not exist: /nope",
            "pyxis: couldn't create enroot start configuration script",
            "pyxis: container was not started successfully by another task",
        ],
    ),
    (
        [f"--container-image={BUSYBOX}", "--container-mounts=nope:/data"],
        255,
        [
            'pyxis: mount source must be a relative path, an absolute path, "tmpfs" or "umount"',
            "pyxis: could not add mount entry: nope:/data",
            "Invalid --container-mounts argument: nope:/data",
        ],
    ),
    (
        [f"--container-image={BUSYBOX}", "--container-mounts=/lustre:data"],
        255,
        ["pyxis: mount target must be a relative path or an absolute path"],
    ),
    ([f"--container-image={BUSYBOX}", "--container-mounts="], 255, ["pyxis: --container-mounts: argument required"]),
    (["--container-image="], 255, ["pyxis: --container-image: argument required"]),
    (
        [f"--container-image={BUSYBOX}", "--container-readonly", "--container-writable"],
        255,
        ["pyxis: both --container-writable and --container-readonly were specified"],
    ),
    (
        [f"--container-image={BUSYBOX}", "--container-workdir=/nope"],
        1,
        ["pyxis: couldn't chdir to /nope: No such file or directory"],
    ),
    (["--container-name=nosuch"], 1, ['_nosuch" does not exist, and --container-image is not set']),
    (
        [f"--container-image={BUSYBOX}", "--container-name=foo:exec"],
        1,
        ['pyxis: error: "exec" flag was passed to --container-name but the container is not running'],
    ),
]


@pytest.mark.usefixtures("broken_images")
@pytest.mark.parametrize(("options", "code", "lines"), FAILURES, ids=[" ".join(options) for options, _, _ in FAILURES])
def test_a_failure_says_what_pyxis_says(lab: Lab, options: list[str], code: int, lines: list[str]) -> None:
    done = srun(lab, *options, "true")
    image = options[0].partition("=")[2]
    assert done.returncode == code
    for line in lines:
        assert line.format(image=image) in done.stderr


def test_a_bad_mount_flag_is_passed_over(lab: Lab) -> None:
    assert in_busybox(lab, "echo fine", "--container-mounts=/lustre:/lustre:bogus") == "fine"


def test_a_missing_command_is_the_steps_failure_not_the_containers(lab: Lab) -> None:
    done = srun(lab, f"--container-image={BUSYBOX}", "nosuchcommand")
    assert done.returncode == 2
    assert "error: execve(): nosuchcommand: No such file or directory" in done.stderr
