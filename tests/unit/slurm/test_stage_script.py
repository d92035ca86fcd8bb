"""Staging: everything is checked before anything is changed, and the job directory appears whole or not at all."""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.slurm.stubs import Ran, Slurm, ended
from towline.models.errors import ConfigError, PlanRefused, StagingFailed
from towline.slurm.calls import Call, RequiredPath, Submission, look_call, stage_call
from towline.slurm.commands import sbatch
from towline.slurm.look import parse_look
from towline.slurm.parse import SlurmId
from towline.slurm.submission import Came, ScriptExit, SubmitAnswer, parse_submission, submission_error
from towline.storage.scripts import script

JOB = "k3q9p0abc"
TOKEN = f"train-{JOB}-a1"
FILES = {
    "job.json": b"{}\n",
    "script/batch": f"#!/bin/sh\n#SBATCH --job-name={TOKEN}\n".encode(),
    "script/env": "export A='ü b'\n".encode(),
    "script/deep/er/file": b"\0\xff",
}


class Site:
    """A cluster with a root that does not exist yet."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.slurm = Slurm(home)
        self.root = home / "lustre" / "my root"
        self.job = self.root / "jobs" / JOB
        self.calls = 0

    def submission(self) -> Submission:
        return Submission(str(self.root), JOB, 1, TOKEN, sbatch(f"{self.job}/script/batch"), time.time())

    def where(self) -> Path:
        self.calls += 1
        return self.home / f"call{self.calls}"

    def stage(self, *required: RequiredPath) -> SubmitAnswer:
        return read(self.slurm.run(stage_call(self.submission(), FILES, required), self.where()))


def read(ran: Ran) -> SubmitAnswer:
    return parse_submission(ran.code, ran.out, ran.err)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_one_call_makes_the_directory_and_submits(site: Site) -> None:
    answer = site.stage()
    assert (answer.exit, answer.slurm, answer.came) == (ScriptExit.OK, SlurmId("41"), Came.SUBMITTED)
    assert {name: (site.job / name).read_bytes() for name in FILES} == FILES
    assert (site.root / "results" / JOB).readlink() == Path(f"../jobs/{JOB}/results")
    assert (site.root / "results" / JOB).resolve() == site.job / "results"
    assert [path.name for path in (site.root / "jobs").iterdir()] == [JOB]


def test_everything_is_private(site: Site) -> None:
    site.stage()
    everything = [path for path in site.root.rglob("*") if not path.is_symlink()]
    assert {path.stat().st_mode & 0o077 for path in everything} == {0}


def test_the_same_call_again_changes_nothing_and_gives_the_same_answer(site: Site) -> None:
    site.stage()
    (site.job / "script" / "env").write_text("kept")
    answer = site.stage()
    assert (answer.slurm, answer.came) == (SlurmId("41"), Came.RECORDED)
    assert (site.job / "script" / "env").read_text() == "kept"
    assert site.slurm.jobs == [41]


def test_two_calls_at_once_make_one_directory_and_one_job(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        site = Site(tmp_path / str(number))
        call = stage_call(site.submission(), FILES)
        answers = [read(ended(ran)) for ran in [site.slurm.start(call, site.where()) for _ in range(3)]]
        assert site.slurm.jobs == [41]
        assert {answer.exit for answer in answers} <= {ScriptExit.OK, ScriptExit.IN_FLIGHT}
        assert [path.name for path in (site.root / "jobs").iterdir()] == [JOB]
        assert (site.job / "script" / "batch").is_file()


@pytest.mark.parametrize(
    ("listing", "code", "lacking"),
    [
        ("squashfs-root\nsquashfs-root/usr/bin/sh\n", 0, True),
        ("squashfs-root/usr/bin/sh\nsquashfs-root/opt/conda/bin/python3.11\nsquashfs-root/usr/x\n", 0, False),
        ("squashfs-root/usr/bin/python\n", 0, False),
        ("squashfs-root/usr/bin/ipython-like\nsquashfs-root/python-docs/x\n", 0, True),
        ("squashfs-root/usr/bin/sh\n", 1, False),
        ("", 0, True),
    ],
)
def test_an_image_without_python_is_refused_only_where_that_is_sure(
    site: Site, tmp_path: Path, listing: str, code: int, lacking: bool
) -> None:
    image = tmp_path / "my image.sqsh"
    image.write_bytes(b"hsqs\0\0")
    program = site.slurm.bin / "unsquashfs"
    program.write_text(f"#!/bin/sh\n[ -f \"$2\" ] || exit 1\nprintf '{listing}'\nexit {code}\n")
    program.chmod(0o755)
    answer = site.stage(RequiredPath(str(image), image=True, python=True))
    assert answer.no_pythons == ((str(image),) if lacking else ())
    if lacking:
        error = submission_error(answer)
        assert isinstance(error, PlanRefused)
        assert f"{image} holds no Python, and the job's command needs one; nothing was changed" in str(error)
    assert site.root.exists() is not lacking


@pytest.mark.parametrize(
    ("listing", "lacking"),
    [
        ("a/usr/bin/python3.11\na/usr/lib/python3/dist-packages/ngcsdk\na/x\n", ""),
        ("a/opt/ngc-cli/ngc\na/usr/bin/python3\na/x\n", ""),
        ("a/usr/bin/python3\na/usr/bin/ngc-like\na/usr/lib/ngcsdk-4.37.0.dist-info\n", "ngc"),
        ("a/usr/bin/sh\na/usr/local/bin/ngc\n", "python"),
    ],
)
def test_an_image_that_could_not_bring_a_model_of_ngc_is_refused(
    site: Site, tmp_path: Path, listing: str, lacking: str
) -> None:
    image = tmp_path / "i.sqsh"
    image.write_bytes(b"hsqs\0\0")
    program = site.slurm.bin / "unsquashfs"
    program.write_text(f"#!/bin/sh\nprintf '{listing}'\n")
    program.chmod(0o755)
    answer = site.stage(RequiredPath(str(image), image=True, python=True, ngc=True))
    assert (answer.no_pythons, answer.no_ngcs) == (
        (str(image),) * (lacking == "python"),
        (str(image),) * (lacking == "ngc"),
    )
    if lacking == "ngc":
        error = submission_error(answer)
        assert isinstance(error, PlanRefused)
        assert f"{image} holds neither the Python module ngcsdk nor the program ngc" in str(error)
        assert "bring the model to the cluster" in error.fix


def test_all_missing_paths_are_named_before_anything_is_changed(site: Site, tmp_path: Path) -> None:
    there = tmp_path / "with  two blanks "
    there.mkdir()
    (there / "good.sqsh").write_bytes(b"hsqs\0\0")
    (there / "empty.sqsh").touch()
    (there / "zeros.sqsh").write_bytes(bytes(8))
    wanted = (
        RequiredPath(str(there)),
        RequiredPath("/nowhere/a"),
        RequiredPath(f"{there}/image.sqsh", image=True),
        RequiredPath(str(there), image=True),
        RequiredPath(f"{there}/good.sqsh", image=True),
        RequiredPath(f"{there}/empty.sqsh", image=True),
        RequiredPath(f"{there}/zeros.sqsh", image=True),
    )
    answer = site.stage(*wanted)
    assert answer.exit is ScriptExit.PATHS_MISSING
    assert answer.missing == ("/nowhere/a", f"{there}/image.sqsh")
    assert answer.unreadable == (str(there),)
    assert answer.no_images == (f"{there}/empty.sqsh", f"{there}/zeros.sqsh")
    site.slurm.set(**{"sinfo.text": ""})
    looked = parse_look(site.slurm.run(look_call(str(site.root), b"#!/bin/sh\n", wanted), site.where()).out)
    assert (looked.missing, looked.no_images) == (answer.missing, answer.no_images)
    assert looked.unreadable == answer.unreadable
    assert looked.room
    assert str(site.root).startswith(looked.room.path)
    error = submission_error(answer)
    assert isinstance(error, PlanRefused)
    assert "/nowhere/a" in error.why
    assert not site.root.exists()
    assert site.slurm.calls("sbatch") == ["--test-only ./batch"]


def test_jobs_that_others_can_write_to_is_refused(site: Site) -> None:
    (site.root / "jobs").mkdir(parents=True)
    for mode in (0o770, 0o707, 0o722):
        (site.root / "jobs").chmod(mode)
        answer = site.stage()
        assert answer.exit is ScriptExit.UNSAFE, oct(mode)
    (site.root / "jobs").chmod(0o755)
    assert site.stage().exit is ScriptExit.OK


def test_a_link_in_place_of_jobs_is_refused(site: Site, tmp_path: Path) -> None:
    site.root.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (site.root / "jobs").symlink_to(tmp_path / "elsewhere")
    assert site.stage().exit is ScriptExit.UNSAFE
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_in_place_of_the_job_is_refused(site: Site, tmp_path: Path) -> None:
    (site.root / "jobs").mkdir(parents=True, mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    site.job.symlink_to(tmp_path / "elsewhere")
    assert site.stage().exit is ScriptExit.UNSAFE
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_root_that_cannot_be_made_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    call = stage_call(replace(site.submission(), root=f"{tmp_path}/file/root"), FILES)
    answer = read(site.slurm.run(call, site.where()))
    assert answer.exit is ScriptExit.BAD_ROOT
    assert "Not a directory" in answer.notices
    assert isinstance(submission_error(answer), StagingFailed)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("No space left on device", ScriptExit.NO_SPACE),
        ("Disk quota exceeded", ScriptExit.NO_SPACE),
        ("Input/output error", ScriptExit.STAGING),
    ],
)
def test_a_write_that_fails_leaves_nothing_and_says_why(site: Site, said: str, expected: ScriptExit) -> None:
    copy = site.slurm.bin / "cp"
    copy.write_text(f"#!/bin/sh\nfor to; do :; done\nmkdir -p \"$to/script\"\necho 'cp: x: {said}' >&2\nexit 1\n")
    copy.chmod(0o755)
    answer = site.stage()
    assert answer.exit is expected
    assert said in answer.notices
    assert list((site.root / "jobs").iterdir()) == []
    assert site.slurm.calls("sbatch") == []
    copy.unlink()
    assert site.stage().exit is ScriptExit.OK


PLACES = "PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/cm/shared/apps/slurm/current/bin\n"


def without_slurm(site: Site, login_shell: str) -> Ran:
    """A call on a host whose PATH has every command but Slurm's; the user's login shell is the given script."""
    call = stage_call(site.submission(), FILES)
    assert PLACES in call.script
    tools = site.home / "tools"
    tools.mkdir()
    for tool in Path("/bin").iterdir():
        if not (site.slurm.bin / tool.name).exists():
            (tools / tool.name).symlink_to(tool)
    shell = site.home / "myshell"
    shell.write_text(login_shell)
    shell.chmod(0o755)
    bare = replace(call, script=call.script.replace(PLACES, ""))
    return site.slurm.run(bare, site.where(), PATH=str(tools), SHELL=str(shell))


def test_slurm_missing_is_told_before_anything_is_changed(site: Site) -> None:
    answer = read(without_slurm(site, "#!/bin/sh\necho Welcome\nexit 1\n"))
    assert answer.exit is ScriptExit.NO_SLURM
    assert f"{site.home}/tools" in answer.notices
    assert not site.root.exists()


def test_the_login_shell_may_know_where_slurm_is(site: Site) -> None:
    knows = f'#!/bin/sh\n[ "$1" = -lc ] || exit 9\necho Welcome\nPATH={site.slurm.bin}:$PATH\neval "$2"\n'
    assert read(without_slurm(site, knows)).came is Came.SUBMITTED


def test_the_setup_line_comes_before_slurm_and_its_chatter_is_dropped(site: Site) -> None:
    hidden = site.home / "module"
    site.slurm.bin.rename(hidden)
    line = f"echo 77; PATH={hidden}:$PATH"
    answer = read(site.slurm.run(stage_call(site.submission(), FILES, setup=line), site.where()))
    assert answer.slurm == SlurmId("41")


@pytest.mark.parametrize(
    ("line", "said"), [("if then", "not valid sh"), ("echo no such module >&2; exit 127", "127: no such module")]
)
def test_a_setup_line_that_fails_is_named_with_its_words(site: Site, line: str, said: str) -> None:
    answer = read(site.slurm.run(stage_call(site.submission(), FILES, setup=line), site.where()))
    assert answer.exit is ScriptExit.SETUP_FAILED
    assert said in answer.notices
    assert isinstance(submission_error(answer), ConfigError)
    assert not site.job.exists()


def test_sbatch_runs_in_the_job_directory(site: Site) -> None:
    """Slurm takes the place for SLURM_SUBMIT_DIR; the operation's own is gone when the job runs."""
    assert site.stage().exit is ScriptExit.OK
    assert f"PWD={site.job}\n" in (site.slurm.state / "sbatch.env").read_text()


def test_an_odd_name_for_a_file_is_refused() -> None:
    submission = Submission("/root", JOB, 1, TOKEN, ("sbatch",), 0.0)
    for name in ("../up", "/abs", "a/../../b", ""):
        with pytest.raises(ValueError):
            stage_call(submission, {name: b""})
    with pytest.raises(ValueError):
        stage_call(submission, {}, [RequiredPath("/a\n/b")])


LAYOUT = (
    f"folder results/work-logs\nlink specs/{JOB}.json ../jobs/{JOB}/job.json\nlink ../outside x\nfolder ../../out\n"
)


def test_a_layout_is_made_below_the_root_and_taken_back_with_the_job(site: Site) -> None:
    files = {**FILES, "script/layout": LAYOUT.encode()}
    answer = read(site.slurm.run(stage_call(site.submission(), files), site.where()))
    assert answer.exit is ScriptExit.OK
    assert (site.job / "results" / "work-logs").is_dir()
    assert (site.root / "specs" / f"{JOB}.json").resolve() == site.job / "job.json"
    (logs,) = (site.root / "slurm-logs").iterdir()
    assert (logs.name, logs.resolve()) == (f"{TOKEN}-41", site.job / "attempts" / "1")
    assert not (site.root / "outside").exists()
    assert not (site.root.parent / "outside").is_symlink()
    assert not (site.root / "out").exists()
    shutil.rmtree(site.slurm.state / "job.41")
    args = (str(site.root), "", f"jobs/{JOB}")
    assert site.slurm.run(Call("remove", script("remove"), args), site.where()).out == f"removed jobs/{JOB}\n"
    left = [path for path in site.root.rglob("*") if path.is_symlink() or path.is_file()]
    assert left == [], "no link leads to nowhere"
