"""What is not needed any more goes, and nothing that is in use."""

from __future__ import annotations

from pathlib import Path

from tests.lab.login import on_login
from tests.lab.terminal import Terminal
from towline.lab import Lab


def test_ended_jobs_and_their_code_go_and_living_ones_stay(lab: Lab, tmp_path: Path) -> None:
    towline, other = Terminal(tmp_path / "state"), Terminal(tmp_path / "other")
    code = tmp_path / "code"
    (code / "sub").mkdir(parents=True)
    (code / "sub" / "f").write_text(str(tmp_path))
    over = towline.submit("--code", str(code), "--", "true")
    alive = towline.submit("--code", str(code), "--", "sleep", "600")
    assert towline("wait", over).code == 0
    where = towline.job(over)["directory"]

    # A machine that knows nothing of these jobs sees what they wrote, and what Slurm has.
    shown = other("gc", "--older-than", "0", "--json")
    assert shown.code == 0, shown
    items = {each["path"]: each for each in shown.json["removable"]}
    assert f"jobs/{alive}" not in items
    assert items[f"jobs/{over}"]["inodes"] > 10
    snapshot = items[f"jobs/{over}"]["snapshot"]
    assert on_login(lab, "ls", where).returncode == 0, "showing it removed something"

    refused = towline("rm", over, alive)
    assert refused.code != 0
    assert f"towline cancel {alive}" in refused.err
    removed = towline("rm", over, "--json")
    assert removed.json == {"removed": [f"jobs/{over}"], "used": []}
    assert on_login(lab, "ls", where).returncode != 0
    assert towline("status", over).code != 0

    root = where.rpartition("/jobs/")[0]
    old = on_login(lab, "touch", "-d", "3 days ago", f"{root}/code/{snapshot}")
    assert old.returncode == 0, old
    listed = [each["path"] for each in towline("gc", "--older-than", "0", "--only", "code", "--json").json["removable"]]
    assert f"code/{snapshot}" not in listed, "a living job needs it"
    assert towline("cancel", alive).code == 0
    assert towline("gc", "--older-than", "0", "--only", "logs", "--yes").code == 0
    assert not on_login(lab, "sh", "-c", 'ls "$1"/attempts/1/*.out', "", towline.job(alive)["directory"]).stdout
    assert towline("rm", alive).code == 0
    gone = towline("gc", "--only", "code", "--older-than", "1d", "--yes")
    assert f"code/{snapshot}\n" in gone.out, gone
    assert on_login(lab, "ls", f"{root}/code/{snapshot}").returncode != 0
