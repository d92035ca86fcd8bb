"""The scripts' own variables: whatever an environment brings under their names, neither meets the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.launch.allocation import Allocation
from towline.models.spec import JobSpec

LAUNCH = Path(__file__).parents[3] / "src/towline/launch/scripts"
SLURM = LAUNCH.parents[1] / "slurm/scripts"
IN_JOB = [*sorted(LAUNCH.glob("*.sh")), SLURM / "past.sh"]
ASSIGNED = re.compile(
    r"(?:^|[\s;({&|!'])([A-Za-z_][A-Za-z0-9_]*)=|\bfor ([A-Za-z_]\w*)|\bread (?:-r )?((?:[A-Za-z_]\w* ?)+)"
)
FOREIGN = re.compile(r"TOWLINE_|SLURM_|IFS$|LC_ALL$|TERM$|PATH$|PERL_BADLANG$|_$|in_|here$")
"""Of Slurm and the system; those of a command that is run inside a job beside it, which leaves them at its end."""
OLD = ("rank", "code", "result", "exits", "log", "number", "role", "step_tasks", "heal_retries", "told", "name", "port")
HOSTILE = "x'; touch /tmp/$(id -u) 1; $((1/0)) \"\n*"


def assigned(text: str) -> set[str]:
    """The variables that a script sets; what stands in quotes or comments is none."""
    text = "".join(f"{line}\n" for line in text.splitlines() if not line.lstrip().startswith("#"))
    text = re.sub(r"\"[^\"]*\"|'[^']*'", '""', text)
    text = re.sub(r"(?m) #.*$", "", text)
    return {name for found in ASSIGNED.findall(text) for names in found for name in names.split()}


OWN = sorted({name for path in IN_JOB for name in re.findall(r"\btl_\w+", path.read_text())})


@pytest.mark.parametrize("path", IN_JOB, ids=lambda path: path.name)
def test_every_variable_has_the_prefix(path: Path) -> None:
    assert [
        name for name in sorted(assigned(path.read_text())) if not name.startswith("tl_") and not FOREIGN.match(name)
    ] == []


def place(allocation: Allocation) -> dict[str, str]:
    values = {**dict.fromkeys(OWN, HOSTILE), **dict.fromkeys(OLD, HOSTILE)}
    spec = JobSpec.build(command=["env", "-0"], env=dict.fromkeys(OLD, "the user's"), hang_after="30m")
    allocation.place_plan(spec, whole_environment=True)
    return values


def test_hostile_values_change_nothing_and_own_names_do_not_reach_the_command(allocation: Allocation) -> None:
    assert allocation.run(42, **place(allocation)) == 0
    seen = dict(each.split("=", 1) for each in allocation.out().rstrip("\0").split("\0"))
    assert {name: seen[name] for name in OLD} == dict.fromkeys(OLD, "the user's")
    assert [name for name in seen if name.startswith("tl_")] == []


def test_a_failure_is_judged_the_same(allocation: Allocation) -> None:
    values = place(allocation)
    (allocation.directory / "script/entrypoint").write_text("exit 7\n")
    assert allocation.run(42, **values) == 7
    assert allocation.fields("decision")["class"] == "user"


def test_variables_of_the_user_under_our_names_reach_the_command(allocation: Allocation) -> None:
    spec = JobSpec.build(command=["env", "-0"], env=dict.fromkeys(OWN, HOSTILE))
    assert allocation.place_plan(spec).run() == 0
    seen = dict(each.split("=", 1) for each in allocation.out().rstrip("\0").split("\0"))
    assert {name: seen.get(name) for name in OWN} == dict.fromkeys(OWN, HOSTILE)
    assert seen["TOWLINE_RESULTS_DIR"] == f"{allocation.directory}/results"
