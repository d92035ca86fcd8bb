"""Results come home byte for byte, many small ones and a large one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.lab.terminal import Terminal
from towline import Cluster
from towline.engine.events import Progress
from towline.lab import Lab

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


def test_a_gigabyte_comes_home_with_progress(
    towline: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(towline.state))
    job = towline.submit("--", "python3", "-c", LARGE)
    assert towline("wait", job).code == 0
    seen: list[Progress] = []
    with Cluster.open("lab") as cluster:
        report = cluster.find([job])[0].pull_results(tmp_path / "home", progress=seen.append)
    assert (report.files, report.bytes, report.refused) == (1, 1 << 30, ())
    assert digest(tmp_path / "home" / "large") == towline("logs", job).out.strip()
    assert {each.bytes_total for each in seen} == {1 << 30}
    done = [each.bytes_done for each in seen]
    assert done == sorted(done)
    assert len(set(done)) > 10
    (tmp_path / "home" / "large").unlink()


def test_a_hostile_tree_stays_below_the_destination(towline: Terminal, tmp_path: Path) -> None:
    job = towline.submit("--", "python3", "-c", HOSTILE)
    assert towline("wait", job).code == 0
    done = towline("results", job, "--pull", str(tmp_path / "home"))
    assert done.code == 0, done
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["good", "inner", "new\nline \x1b[31m"]
    assert "outer" in done.err
    assert "\x1b[31m" not in done.err + done.out + towline("results", job).out
