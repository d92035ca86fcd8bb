"""Results come home byte for byte, many small ones and a large one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.lab.login import on_login
from tests.lab.sshd import wait_until
from tests.lab.terminal import Done, Terminal
from towline import Cluster
from towline.engine.events import Progress
from towline.lab import Lab
from towline.remote.files.tree import FOLDER

MANY = """
import hashlib, os, pathlib
root = pathlib.Path(os.environ["TOWLINE_RESULTS_DIR"])
for number in range(2000):
    path = root / f"d{number % 20}" / f"f {number}.bin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(hashlib.sha256(str(number).encode()).digest() * (number % 7))
"""

LARGE = """
import hashlib, os
total = hashlib.sha256()
with open(os.environ["TOWLINE_RESULTS_DIR"] + "/large", "wb") as file:
    block = os.urandom(1 << 20)
    for number in range(1024):
        piece = number.to_bytes(8, "big") + block[8:]
        file.write(piece)
        total.update(piece)
print(total.hexdigest())
"""

HOSTILE = """
import os
os.chdir(os.environ["TOWLINE_RESULTS_DIR"])
open("good", "w").write("good")
os.symlink("good", "inner")
os.symlink("/etc/passwd", "outer")
os.symlink("../../../x", "up")
os.mkfifo("pipe")
open("new\\nline \\x1b[31m", "w").write("odd")
"""


def digest(path: Path) -> str:
    """The file's SHA-256, read in pieces."""
    total = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def begun(home: Path) -> int:
    """Bytes of files that are not whole yet."""
    return sum(path.stat().st_size for path in (home / FOLDER).glob("*.part"))


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def test_two_thousand_small_files_come_home(towline: Terminal, tmp_path: Path) -> None:
    job = towline.submit("--", "python3", "-c", MANY)
    assert towline("wait", job).code == 0
    listed = towline("results", job, "--json")
    assert listed.code == 0, listed
    done = towline("results", job, "--pull", str(tmp_path / "home"))
    assert done.code == 0, done
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(files) == 2000
    for number in range(2000):
        path = tmp_path / "home" / f"d{number % 20}" / f"f {number}.bin"
        assert path.read_bytes() == hashlib.sha256(str(number).encode()).digest() * (number % 7)


def test_a_gigabyte_comes_home_with_progress_and_goes_on_where_a_killed_pull_was(
    towline: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    job = towline.submit("--", "python3", "-c", LARGE)
    assert towline("wait", job).code == 0
    home = tmp_path / "home"
    with towline.start("results", job, "--pull", str(home)) as killed:
        wait_until(lambda: begun(home) > 100_000_000, killed)
        killed.kill()
    assert [path.name for path in home.iterdir()] == [FOLDER]
    begun_before = begun(home)
    seen: list[Progress] = []
    with Cluster.open("lab") as cluster:
        report = cluster.find([job])[0].pull_results(home, progress=seen.append)
    assert (report.files, report.bytes, report.refused) == (1, 1 << 30, ())
    assert report.received == (1 << 30) - begun_before
    assert [path.name for path in home.iterdir()] == ["large"]
    assert digest(tmp_path / "home" / "large") == towline("logs", job).out.strip()
    assert {each.bytes_total for each in seen} == {1 << 30}
    done = [each.bytes_done for each in seen]
    assert done == sorted(done)
    assert len(set(done)) > 10
    assert min(done) >= begun_before
    (tmp_path / "home" / "large").unlink()


def test_a_hostile_tree_stays_below_the_destination(towline: Terminal, tmp_path: Path) -> None:
    job = towline.submit("--", "python3", "-c", HOSTILE)
    assert towline("wait", job).code == 0
    done = towline("results", job, "--pull", str(tmp_path / "home"))
    assert done.code == 0, done
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["good", "inner", "new\nline \x1b[31m"]
    assert "outer" in done.err
    assert "\x1b[31m" not in done.err + done.out + towline("results", job).out


def test_results_come_over_the_host_for_transfers(lab: Lab, towline: Terminal, tmp_path: Path) -> None:
    job = towline.submit("--", "sh", "-c", 'cd "$TOWLINE_RESULTS_DIR" && echo 1 >a && mkdir d && echo 2 >d/b')
    assert towline("wait", job).code == 0

    def pull(dest: str, host: str, **settings: str) -> Done:
        towline.environment = {"TOWLINE_TRANSFER_HOST": host, **settings}
        return towline("results", job, "--pull", str(tmp_path / dest), "--json")

    [over_ssh] = pull("ssh", "login2").json["results"]
    assert (over_ssh["pulled"]["files"], over_ssh["pulled"]["received"], over_ssh["pulled"]["kept"]) == (2, 4, 0)
    assert (tmp_path / "ssh" / "d" / "b").read_text() == "2\n"
    mounted = pull("here", "local", TOWLINE_PATH_MAP=f"/lustre:{lab.paths.lustre}")
    assert mounted.code == 0, mounted
    assert (tmp_path / "here" / "a").read_text() == "1\n"
    assert pull("wrong", "local", TOWLINE_PATH_MAP="/lustre:/nosuch").json["error"]["code"] == "not-found"
    away = pull("away", "nosuch.invalid").json["error"]
    assert (away["code"], "nosuch.invalid" in away["what"]) == ("unreachable", True)
    towline.environment = {}

    folder = f"{towline.job(job)['directory']}/results"
    on_login(lab, script=f"chmod 000 {folder}/a")
    shut = towline("results", job, "--pull", str(tmp_path / "rest"))
    assert shut.code == 74, shut
    assert "a: " in shut.err
    assert [path.name for path in (tmp_path / "rest").iterdir()] == ["d"]


STEPS = """
import os, pathlib, time
root = pathlib.Path(os.environ["TOWLINE_RESULTS_DIR"])
(root / "sub").mkdir()
(root / "sub" / "1.pt").write_text("one")
(root / "skipped.txt").write_text("no")
(root / "tmp-3.pt").write_text("begun")
events = (root / "events.out.tfevents.1").open("w")
writing = (root / "2.pt").open("w")
while not (root / "go").exists():
    print("x", file=writing, flush=True)
    print("e", file=events, flush=True)
    time.sleep(0.2)
writing.close()
(root / "tmp-3.pt").rename(root / "3.pt")
"""


def test_results_come_home_while_the_job_runs_and_what_is_being_written_comes_whole(
    lab: Lab, towline: Terminal, tmp_path: Path
) -> None:
    job = towline.submit("--", "python3", "-c", STEPS)
    home = tmp_path / "home"
    only = ("--only", "*.pt", "--only", "events.*")
    pulling = towline.start("results", job, "--pull", str(home), *only, "--follow", "--json")
    events = home / "events.out.tfevents.1"
    with pulling:
        wait_until(lambda: (home / "sub" / "1.pt").exists() and events.exists(), pulling)
        size = events.stat().st_size
        wait_until(lambda: events.stat().st_size > size, pulling)
        assert not (home / "2.pt").exists()
        once = towline("results", job, "--pull", str(tmp_path / "once"))
        assert once.code == 0, once
        assert "2.pt (the job is still writing it" in once.err
        assert not {"2.pt", "tmp-3.pt"} & {path.name for path in (tmp_path / "once").iterdir()}
        assert (tmp_path / "once" / events.name).exists()
        on_login(lab, "touch", f"{towline.job(job)['directory']}/results/go")
        out, err = pulling.communicate(timeout=100)
    assert pulling.returncode == 0, err
    assert set((home / "2.pt").read_text()) == {"x", "\n"}
    assert sorted(path.name for path in home.rglob("*") if path.is_file()) == ["1.pt", "2.pt", "3.pt", events.name]
    assert len(out.splitlines()) >= 2
