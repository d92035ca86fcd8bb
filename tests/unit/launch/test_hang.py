"""A job that wants to be taken for hung: what counts as a sign of life, and what is left of one that shows none."""

from __future__ import annotations

import subprocess
from importlib.resources import files

import pytest

from tests.unit.launch.allocation import SHELLS, Allocation
from towline.models.spec import JobSpec

LIMIT = 3
"""Seconds in place of the spec's ten, the least that one can ask for."""
PYTHON = "exec python3 -c 'import time; print(\"begun\", flush=True); time.sleep(300)'"
SMI = """\
case $* in *-L*) echo 'GPU 0: Stand-in (UUID: GPU-1)' ;; *) echo {use} ;; esac"""


def placed(allocation: Allocation, text: str, **resources: int) -> Allocation:
    spec = JobSpec.build(shell=text, hang_after="10s", resources=resources, env={"MARK": "x"})
    allocation.place_plan(spec)
    settings = allocation.directory / "script/settings"
    settings.write_text(settings.read_text().replace("tl_heal_hang='10'", f"tl_heal_hang='{LIMIT}'"))
    return allocation


def with_tool(allocation: Allocation, name: str, text: str) -> None:
    program = allocation.tools / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def with_gpu_in_use(allocation: Allocation, use: int) -> None:
    with_tool(allocation, "nvidia-smi", SMI.format(use=use))


def test_a_silent_job_leaves_its_stacks_and_is_started_again(allocation: Allocation) -> None:
    placed(allocation, PYTHON).run(SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    end, decision = allocation.end(), allocation.fields("decision")
    assert end
    assert (end.reason, end.code) == ("hung", 124)
    assert (decision["class"], decision["next"]) == ("ambiguous", "yes")
    assert "attempts/1/stacks" in decision["evidence"]
    stacks = (allocation.attempt(1) / "stacks" / "node5").read_text()
    assert "python3 -c import time" in stacks
    assert "\nthread " in stacks
    assert "most recent call first" in (allocation.attempt(1) / "stacks" / "log").read_text()


@pytest.mark.parametrize("allocation", SHELLS[:1], indirect=True)
def test_calls_that_py_spy_cannot_show_are_shown_by_gdb(allocation: Allocation) -> None:
    """It knows Python only, so each process is asked for with what is left."""
    with_tool(allocation, "py-spy", 'case $(cat "/proc/$3/comm") in python3) echo spied ;; *) exit 1 ;; esac')
    with_tool(allocation, "gdb", "echo backtrace")
    placed(allocation, "python3 -c 'import time; time.sleep(300)'; exit 3").run(SLURMD_NODENAME="node5")
    stacks = (allocation.attempt(1) / "stacks" / "node5").read_text()
    (python,) = [each for each in stacks.split("\n== ") if "python3\n" in each and "spied" in each]
    assert "backtrace" not in python
    assert "backtrace" in stacks


@pytest.mark.parametrize("allocation", SHELLS[:1], indirect=True)
def test_calls_are_asked_for_in_the_container_and_else_on_the_node(allocation: Allocation) -> None:
    """Images bring py-spy, nodes hardly ever have it."""
    with_tool(allocation, "py-spy", 'echo "on the node $3"')
    only_python = """[ "$(cat "/proc/$3/comm")" = python3 ] && echo within"""
    inner = f"""\
mount -t tmpfs none '{allocation.tools}' && mkdir '{allocation.tools}/own' && cd '{allocation.tools}/own' || exit
printf '%s\\n' '#!/bin/sh' '{only_python}' >py-spy && chmod +x py-spy && cp py-spy gdb && PATH=$PWD:$PATH
exec sh -c 'python3 -c "import time; time.sleep(300)"; exit 3'
"""
    script = allocation.tools.parent / "inner"
    script.write_text(inner)
    placed(allocation, f"unshare --user --map-root-user --mount sh '{script}'").run(SLURMD_NODENAME="node5")
    stacks = (allocation.attempt(1) / "stacks" / "node5").read_text()
    told = {each.split("Name:\t")[1].split("\n")[0]: each for each in stacks.split("\n== ")[1:] if "Name:" in each}
    assert "\nwithin\n" in told["python3"]
    assert "on the node" not in told["python3"]
    assert "on the node" in told["sh"]


@pytest.mark.parametrize("allocation", SHELLS[:1], indirect=True)  # these take their time, so one shell each
def test_it_is_given_up_after_three_starts_without_progress(allocation: Allocation) -> None:
    placed(allocation, PYTHON)
    for number in (1, 2, 3):
        directory = allocation.attempt(number)
        directory.mkdir(exist_ok=True)
        (directory / "decision").write_text("class=ambiguous\nnext=yes\nwhy=\nnodes=\nprogress=no\nevidence=\n")
    allocation.run(SLURM_RESTART_COUNT="3", SLURMD_NODENAME="node5", STUB_REQUEUE="yes")
    assert allocation.fields("decision", 4)["why"] == "it made no progress in 4 starts in a row"


@pytest.mark.parametrize("allocation", SHELLS[:1], indirect=True)
@pytest.mark.parametrize(
    "text",
    [
        "for i in 1 2 3 4 5 6; do echo $i; sleep 1; done",
        'for i in 1 2 3 4 5 6 7 8 9 10; do echo $i >>"$TOWLINE_RESULTS_DIR/c.pt.part"; sleep 1; done',
    ],
    ids=["logs", "writes a checkpoint"],
)
def test_a_job_that_shows_a_sign_of_life_goes_on(allocation: Allocation, text: str) -> None:
    assert placed(allocation, text).run(SLURMD_NODENAME="node5") == 0


@pytest.mark.parametrize("allocation", SHELLS[-1:], indirect=True)
@pytest.mark.parametrize(("use", "seconds", "code"), [(97, 9, 0), (0, 50, 124)])
def test_a_silent_job_that_uses_its_gpus_goes_on(allocation: Allocation, use: int, seconds: int, code: int) -> None:
    with_gpu_in_use(allocation, use)
    assert placed(allocation, f"exec sleep {seconds}", gpus_per_node=1).run(SLURMD_NODENAME="node5") == code


def test_a_program_that_fails_by_itself_is_not_called_hung(allocation: Allocation) -> None:
    assert placed(allocation, "sleep 1; exit 3").run(SLURMD_NODENAME="node5") == 3
    assert not (allocation.attempt(1) / "hung").exists()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_helper_that_loses_the_first_signal_is_stopped(shell: tuple[str, ...]) -> None:
    """As one does that has not dropped its parent's traps yet; whoever waited for it would wait for ever."""
    script = files("towline.launch.scripts") / "hang.sh"
    text = (
        f". '{script}'; (trap : TERM; sleep 0.3; trap - TERM; sleep 30) >/dev/null 2>&1 & stop_helper $!; echo stopped"
    )
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, timeout=10, check=False)
    assert done.stdout == "stopped\n"
