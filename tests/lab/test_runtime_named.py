"""Containers that outlive a step: by name, saved to an image, joined while they run; and Enroot by hand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.lab.login import on_login, srun
from towline.lab import Lab
from towline.lab.layout import ALICE, LOGINS

IMAGE = "--container-image=/lustre/images/busybox.sqsh"
NAMED = "--container-name=labtest"
WRITE = f"srun {IMAGE} {NAMED} --container-writable sh -c 'echo kept >/kept'"
READ = "cat /kept"
MINE = "/lustre/alice/runtime-tests"


def allocate(lab: Lab, script: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in an allocation of one node, where its steps are."""
    return on_login(lab, "salloc", "-Q", "-N1", "-t2", "--job-name=labtest-runtime", *options, "sh", "-c", script)


@pytest.fixture(autouse=True)
def clean(lab: Lab) -> Iterator[None]:
    on_login(lab, script="rm -f *.sqsh")
    yield
    on_login(lab, script="rm -f *.sqsh")


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_named_container_is_there_for_the_next_step(lab: Lab) -> None:
    done = allocate(lab, f"{WRITE}; srun {NAMED} {READ}")
    assert (done.returncode, done.stdout) == (0, "kept\n"), done.stderr


def test_with_an_image_the_container_of_that_name_is_used_all_the_same(lab: Lab) -> None:
    assert allocate(lab, f"{WRITE}; srun {IMAGE} {NAMED} {READ}").stdout == "kept\n"


def test_a_named_container_ends_with_its_job(lab: Lab) -> None:
    assert allocate(lab, WRITE).returncode == 0
    done = allocate(lab, f"srun {NAMED} {READ}")
    assert done.returncode == 1
    assert '_labtest" does not exist, and --container-image is not set' in done.stderr


def test_names_are_one_nodes_own(lab: Lab) -> None:
    script = f"srun -N1 -w $(scontrol show hostnames | head -n1) {IMAGE} {NAMED} true; srun -N2 -n2 {NAMED} true"
    done = allocate(lab, script, "-N2")
    assert done.returncode == 1
    assert done.stderr.count("does not exist, and --container-image is not set") == 1


def test_create_wants_a_new_container(lab: Lab) -> None:
    create = f"srun {IMAGE} {NAMED}:create true"
    done = allocate(lab, f"{create} && echo made; {create} || echo refused")
    assert done.stdout == "made\nrefused\n"
    refusal = '"create" flag was passed to --container-name but the container already exists'
    assert f"pyxis: error: {refusal}" in done.stderr


def while_it_runs(lab: Lab, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script while a step of the same allocation is in the container, with a file in its /tmp."""
    sleeper = "touch /tmp/mine; touch /run-mark/up; while [ ! -e /run-mark/done ]; do usleep 20000; done"
    step = (
        f"srun --overlap {IMAGE} {NAMED} --container-writable --container-mounts=$PWD/mark:/run-mark sh -c '{sleeper}'"
    )
    begin = f"rm -rf mark; mkdir mark; {step} & until [ -e mark/up ]; do sleep 0.05; done"
    return allocate(lab, f"{begin}; {script}; touch mark/done; wait")


def test_a_step_joins_the_container_while_it_runs(lab: Lab) -> None:
    done = while_it_runs(lab, f"srun --overlap {NAMED} ls /tmp; srun --overlap {NAMED}:exec ls /tmp")
    assert done.stdout == "mine\nmine\n", done.stderr


def test_mounts_are_ignored_when_joining(lab: Lab) -> None:
    done = while_it_runs(lab, f"srun --overlap {NAMED}:exec --container-mounts=/lustre:/lustre ls -d /tmp")
    assert done.stdout == "/tmp\n"
    assert "pyxis: ignoring --container-mounts when attaching to a running container" in done.stderr


def test_no_exec_starts_the_container_once_more(lab: Lab) -> None:
    done = while_it_runs(lab, f"srun --overlap {NAMED}:no_exec sh -c 'ls /tmp; echo apart'")
    assert done.stdout == "apart\n", done.stderr


def test_exec_wants_a_running_container(lab: Lab) -> None:
    done = allocate(lab, f"srun {IMAGE} {NAMED} true; srun {NAMED}:exec true")
    assert done.returncode == 1
    refusal = '"exec" flag was passed to --container-name but the container is not running'
    assert f"pyxis: error: {refusal}" in done.stderr


def test_a_flag_that_is_none_is_refused(lab: Lab) -> None:
    done = srun(lab, IMAGE, f"{NAMED}:bogus", "true")
    assert done.returncode == 255
    assert 'pyxis: --container-name: flag must be "auto", "create", "exec" or "no_exec"' in done.stderr


# --- saving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["./saved.sqsh", "saved.sqsh", f"{MINE}/saved.sqsh"])
def test_a_saved_container_is_an_image(lab: Lab, path: str) -> None:
    saved = srun(lab, IMAGE, "--container-writable", f"--container-save={path}", "sh", "-c", "echo kept >/kept")
    assert saved.returncode == 0, saved.stderr
    assert f" to {path}\n" in saved.stderr
    assert srun(lab, "--container-image=./saved.sqsh", "cat", "/kept", "/etc/os-release").stdout.startswith(
        "kept\nNAME="
    )


def test_mount_points_are_not_saved(lab: Lab) -> None:
    mounts = "--container-mounts=/lustre:/data,/etc/hosts:/file"
    srun(lab, IMAGE, mounts, "--container-save=saved.sqsh", "true")
    done = srun(lab, "--container-image=./saved.sqsh", "ls", "/")
    assert "bin" in done.stdout.split()
    assert not {"data", "file", ".lock"} & set(done.stdout.split())


def test_saving_replaces_an_image(lab: Lab) -> None:
    on_login(lab, script="echo old >saved.sqsh")
    assert srun(lab, IMAGE, "--container-save=saved.sqsh", "true").returncode == 0
    assert srun(lab, "--container-image=./saved.sqsh", "true").returncode == 0


# --- command and entrypoint --------------------------------------------------------------------------------------


@pytest.fixture
def with_entrypoint(lab: Lab) -> str:
    """An image whose command script sets a variable in its entrypoint, as many of NVIDIA's do; and prints.

    Without an entrypoint a container's rc.local, which a saved image keeps, goes past it.
    """
    entrypoint = 'printf "%s\\n" "echo greetings" "export ENTERED=yes" "exec \\"\\$@\\"" >/entry'
    script = 'printf "%s\\n" "if [ -s /etc/rc.local ]; then . /etc/rc.local; fi" "exec sh /entry \\"\\$@\\"" >/etc/rc'
    change = f"{entrypoint}; {script}; : >/etc/rc.local"
    done = srun(lab, IMAGE, "--container-writable", "--container-save=entry.sqsh", "sh", "-c", change)
    assert done.returncode == 0, done.stderr
    return "--container-image=./entry.sqsh"


def test_the_entrypoint_runs_when_asked_for(lab: Lab, with_entrypoint: str) -> None:
    say = ("sh", "-c", "echo entered=$ENTERED")
    assert srun(lab, with_entrypoint, *say).stdout == "entered=\n"
    assert srun(lab, with_entrypoint, "--no-container-entrypoint", *say).stdout == "entered=\n"
    done = srun(lab, with_entrypoint, "--container-entrypoint", *say)
    assert done.stdout == "entered=yes\n"
    assert "greetings" not in done.stderr


def test_the_entrypoint_can_be_heard(lab: Lab, with_entrypoint: str) -> None:
    done = srun(lab, with_entrypoint, "--container-entrypoint", "--container-entrypoint-log", "true")
    assert "greetings" in done.stderr.splitlines()


def test_settings_can_come_from_variables(lab: Lab) -> None:
    settings = (
        "PYXIS_CONTAINER_IMAGE=/lustre/images/busybox.sqsh PYXIS_CONTAINER_WRITABLE=1 PYXIS_CONTAINER_WORKDIR=/etc"
    )
    done = on_login(lab, script=f"{settings} srun -t1 sh -c 'pwd; touch /x && ls /x'")
    assert done.stdout == "/etc\n/x\n", done.stderr


def test_a_mount_may_have_a_space_in_it(lab: Lab) -> None:
    on_login(lab, script="mkdir -p 'a b'; echo here >'a b/f'")
    assert srun(lab, IMAGE, f"--container-mounts={MINE}/a b:/c d", "cat", "/c d/f").stdout == "here\n"


def test_a_mount_can_be_taken_away(lab: Lab) -> None:
    done = srun(lab, IMAGE, "--container-mounts=umount:/sys", "sh", "-c", "ls /sys | wc -l")
    assert done.stdout == "0\n", done.stderr


def test_files_seem_to_change_hands_in_a_container(lab: Lab) -> None:
    script = "touch /x && chown 1:1 /x && stat -c %U /x"
    assert srun(lab, IMAGE, "--container-writable", "sh", "-c", script).stdout == "alice\n"


def test_tasks_in_a_pytorch_image_know_their_rank(lab: Lab) -> None:
    mark = "echo PYTORCH_VERSION=2 >>/etc/environment"
    assert srun(lab, IMAGE, "--container-writable", "--container-save=torch.sqsh", "sh", "-c", mark).returncode == 0
    say = ("sh", "-c", "echo $RANK/$LOCAL_RANK")
    assert sorted(srun(lab, "-N2", "-n2", "--container-image=./torch.sqsh", *say).stdout.split()) == ["0/0", "1/0"]
    assert srun(lab, IMAGE, *say).stdout == "/\n"


# --- Enroot by hand -----------------------------------------------------------------------------------------------

CREATE = "enroot create -n labtest /lustre/images/busybox.sqsh 2>/dev/null"


@pytest.fixture
def created(lab: Lab) -> Iterator[None]:
    """A container of alice's on login1."""
    on_login(lab, script=f"enroot remove -f labtest; {CREATE}")
    yield
    on_login(lab, script="enroot remove -f labtest")


@pytest.mark.usefixtures("created")
def test_enroot_starts_a_container(lab: Lab) -> None:
    done = on_login(lab, "enroot", "start", "labtest", "sh", "-c", "cat /etc/os-release; id -un; touch /x")
    assert 'NAME="LabBusybox"' in done.stdout
    assert done.stdout.endswith("\nalice\n")
    assert (done.returncode, done.stderr) == (1, "touch: /x: Read-only file system\n")


@pytest.mark.usefixtures("created")
def test_enroot_starts_a_container_with_mounts_variables_and_rights(lab: Lab) -> None:
    options = ["--rw", "--root", "--mount", "/lustre:/data", "-e", "COLOUR=red", "--env", "LANG"]
    script = "touch /x; id -u; echo $COLOUR $LANG; ls -d /data/images"
    done = on_login(lab, "env", "LANG=C", "enroot", "start", *options, "labtest", "sh", "-c", script)
    assert done.stdout.split() == ["0", "red", "C", "/data/images"], done.stderr


@pytest.mark.usefixtures("created")
def test_enroot_lists_and_enters_what_runs(lab: Lab) -> None:
    script = (
        "rm -f up; enroot start -m $PWD:/here -e COLOUR=red labtest sh -c"
        " 'touch /here/up /tmp/mine; while [ -e /here/up ]; do usleep 20000; done' &"
        " until [ -e up ]; do sleep 0.05; done;"
        " pid=$(enroot list -f | awk '$1 == \"labtest\" { print $2 }');"
        " enroot exec $pid sh -c 'ls /tmp; echo $COLOUR'; rm up; wait;"
        " enroot exec $pid true; echo $?; enroot list -f | grep labtest | wc -w"
    )
    done = on_login(lab, script=script)
    assert done.stdout.split() == ["mine", "red", "1", "1"], done.stderr
    assert "[ERROR] Process not found: " in done.stderr


@pytest.mark.usefixtures("created")
def test_enroot_exports_what_it_has(lab: Lab) -> None:
    script = "enroot start --rw labtest sh -c 'echo kept >/kept'; enroot export -o out.sqsh labtest 2>/dev/null"
    assert on_login(lab, script=script).returncode == 0
    assert srun(lab, "--container-image=./out.sqsh", "cat", "/kept").stdout == "kept\n"
    again = on_login(lab, "enroot", "export", "-o", "out.sqsh", "labtest")
    assert (again.returncode, again.stderr) == (1, f"[ERROR] File already exists: {MINE}/out.sqsh\n")


REFUSED = [
    ("create -n labtest /lustre/images/busybox.sqsh", "File already exists: {data}/labtest"),
    ("create -n other /lustre/images/nope.sqsh", "No such file or directory: /lustre/images/nope.sqsh"),
    ("create -n other /etc/passwd", "Invalid image format: /etc/passwd"),
    ("create -n a/b /lustre/images/busybox.sqsh", "Invalid argument: a/b"),
    ("start nosuch", "No such file or directory: {data}/nosuch"),
    ("start a/b", "Invalid argument: a/b"),
    ("start -e 1=2 labtest true", "Invalid argument: 1=2"),
    ("start -c /nope/conf labtest true", "No such file or directory: /nope/conf"),
    ("remove -f nosuch", "No such file or directory: {data}/nosuch"),
    ("export nosuch", "No such file or directory: {data}/nosuch"),
    ("export -o /nope/x.sqsh labtest", "No such file or directory: /nope/x.sqsh"),
]


@pytest.mark.usefixtures("created")
@pytest.mark.parametrize(("arguments", "cause"), REFUSED)
def test_enroot_says_what_it_refuses(lab: Lab, arguments: str, cause: str) -> None:
    data = lab.paths.own(LOGINS[0]) / "containers" / f"user-{ALICE.uid}" / "data"
    done = on_login(lab, "enroot", *arguments.split())
    assert (done.returncode, done.stderr) == (1, f"[ERROR] {cause.format(data=data)}\n")


@pytest.mark.usefixtures("created")
def test_enroot_removes_after_a_yes(lab: Lab) -> None:
    on_login(lab, script="echo n | enroot remove labtest")
    assert "labtest" in on_login(lab, "enroot", "list").stdout.split()
    on_login(lab, script="echo y | enroot remove labtest")
    assert "labtest" not in on_login(lab, "enroot", "list").stdout.split()


def test_paths_of_enroot_can_be_chosen(lab: Lab) -> None:
    script = (
        "rm -rf e; mkdir e; export ENROOT_DATA_PATH=$PWD/e/data ENROOT_CACHE_PATH=$PWD/e/cache ENROOT_TEMP_PATH=$PWD/e"
        f" ENROOT_RUNTIME_PATH=$PWD/e/run; {CREATE}; enroot start labtest true;"
        " enroot import docker://registry.lab:5000#demo 2>/dev/null; ls e/data; ls -A e; ls e/cache | grep -c ."
    )
    done = on_login(lab, script=script)
    assert done.stdout.split()[:4] == ["labtest", "cache", "data", "run"], done.stderr
    assert int(done.stdout.split()[4]) > 0


def test_an_image_of_another_architecture_is_warned_of(lab: Lab) -> None:
    foreign = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    done = on_login(lab, "enroot", "import", "-a", foreign, "-o", "x.sqsh", "docker://registry.lab:5000#demo")
    assert done.returncode == 0, done.stderr
    assert "[WARN] Image architecture doesn't match the requested one: " in done.stderr


def test_credentials_are_where_the_configuration_is(lab: Lab) -> None:
    password = lab.paths.registry_password.read_text()
    write = ["sh", "-c", f"umask 077; mkdir -p {MINE}/conf; cat >{MINE}/conf/.credentials"]
    line = f"machine registry.lab login puller password {password}"
    assert lab.run_on("login1", write, user="alice", stdin=line).returncode == 0
    done = on_login(
        lab, script=f"ENROOT_CONFIG_PATH={MINE}/conf enroot import -o x.sqsh docker://registry.lab:5001#demo"
    )
    assert done.returncode == 0, done.stderr
    assert f"[INFO] Using credentials from file: {MINE}/conf/.credentials\n" in done.stderr
