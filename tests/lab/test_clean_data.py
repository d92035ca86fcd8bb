"""Data, code and records that nobody uses go, and what a job needs stays, whoever submits it and whenever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.login import on_login
from tests.lab.terminal import Done, Terminal
from towline.lab import Lab

ROOT = "/lustre/alice/towline"
SUBMITTED_MEANWHILE = """
mkdir -p bin
cat >bin/squeue <<'END'
#!/bin/sh
# The second look finds a job that was submitted after the first.
PATH=${PATH#*:}
if [ ! -e "$0.asked" ]; then touch "$0.asked"; exec squeue "$@"; fi
mkdir -p "$ROOT/jobs/zzlate/attempts/1" "$ROOT/jobs/zzlate/script"
echo "$ROOT/data/$SET" >"$ROOT/jobs/zzlate/script/needs"
exec squeue "$@"
END
chmod 755 bin/squeue
"""


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def pushed(towline: Terminal, tmp_path: Path, name: str) -> str:
    """A data set on the cluster that nothing has touched for three days."""
    data = tmp_path / name
    data.mkdir()
    (data / "a").write_text("one\n")
    done = towline("push", str(data), f"{tmp_path.name}-{name}")
    assert done.code == 0, done
    return done.out.strip().rpartition("/")[2]


def gc(towline: Terminal, *words: str) -> Done:
    done = towline("gc", "--older-than", "1d", "--json", *words)
    assert done.code == 0, done
    return done


def age(lab: Lab, *paths: str) -> None:
    made = on_login(lab, "touch", "-d", "3 days ago", *(f"{ROOT}/{path}" for path in paths))
    assert made.returncode == 0, made


def test_data_goes_when_it_is_named_and_nobody_needs_it(lab: Lab, towline: Terminal, tmp_path: Path) -> None:
    other = Terminal(tmp_path / "other")
    idle, needed, fresh = (pushed(towline, tmp_path, name) for name in ("idle set", "needed", "fresh"))
    job = other.submit("--input", f"/data={ROOT}/data/{needed}", "--begin", "+1h", "--", "true")
    left, record = f"jobs/.{tmp_path.name}.login1.1", f"images/imports/{tmp_path.name}"
    on_login(lab, "mkdir", "-p", f"{ROOT}/{left}", f"{ROOT}/{record}/attempts/1")
    age(lab, f"data/{idle}", f"data/{needed}", left, f"{record}/attempts/1")
    usual = {each["path"]: each for each in gc(towline).json["removable"]}
    assert {left, f"{ROOT}/{record}"} <= set(usual)
    assert not [path for path in usual if path.startswith("data/")]
    listed = {each["path"]: each for each in gc(towline, "--only", "data").json["removable"]}
    assert listed[f"data/{idle}"]["inodes"] == 2
    assert not {f"data/{needed}", f"data/{fresh}"} & set(listed)
    removed = gc(towline, "--only", "data", "--only", "imports", "--only", "leftovers", "--yes").json["removed"]
    assert {f"data/{idle}", left, f"{ROOT}/{record}"} <= set(removed)
    there = on_login(lab, "ls", f"{ROOT}/data", f"{ROOT}/jobs", f"{ROOT}/images/imports", "-A").stdout.splitlines()
    assert {needed, fresh, job} <= set(there)
    assert not {idle, left.rpartition("/")[2], tmp_path.name} & set(there)
    assert other("cancel", job).code == 0


def test_what_a_job_that_is_submitted_meanwhile_needs_gets_its_name_back(
    lab: Lab, towline: Terminal, tmp_path: Path
) -> None:
    name = pushed(towline, tmp_path, "late")
    age(lab, f"data/{name}")
    bin_there = f"/lustre/alice/{tmp_path.name}"
    script = f"mkdir -p {bin_there}; cd {bin_there}; ROOT={ROOT} SET={name}\n{SUBMITTED_MEANWHILE}"
    made = on_login(lab, script=f"{script}\nsed -i '2i ROOT={ROOT} SET={name}' bin/squeue")
    assert made.returncode == 0, made
    towline.environment = {"TOWLINE_SETUP": f"PATH={bin_there}/bin:$PATH"}
    try:
        done = towline("gc", "--only", "data", "--older-than", "1d", "--yes", "--json")
        assert f"data/{name}" in done.json["used"], done
        assert on_login(lab, "cat", f"{ROOT}/data/{name}/a").stdout == "one\n"
    finally:
        on_login(lab, "rm", "-rf", bin_there, f"{ROOT}/jobs/zzlate")
