"""Jobs that will never start unless somebody acts, for real: each command says so at once, with the way out."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.lab.faulty import as_alice, fault
from tests.lab.terminal import PATIENCE, Terminal
from towline.lab import Lab

BLOCKED = {
    "JobHeldAdmin": ("It is held by the site.", "Ask the site's support, or cancel it."),
    "PartitionNodeLimit": ("more nodes than the partition has or allows", "Cancel it and submit it again with less"),
    "PartitionTimeLimit": ("more time than the partition allows", "Cancel it and submit it again with less"),
    "DependencyNeverSatisfied": ("ended in a way that this one must not start after", "without the dependency"),
    "launch failed requeued held": ("A node could not start it", "leaving out that node"),
}
"""Slurm's reason → what is said of it, and the way out."""


@pytest.fixture(scope="module")
def towline(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Terminal:
    return Terminal(tmp_path_factory.mktemp("blocked"), {"TOWLINE_POLL_INTERVAL": "2"})


def held(towline: Terminal, *options: str) -> tuple[str, str]:
    """A job that is held, by its own id and Slurm's."""
    job = towline.submit("--sbatch", "hold", *options, "--", "true")
    return job, towline.job(job)["slurm_ids"][0]


@pytest.fixture(scope="module")
def jobs(towline: Terminal, lab: Lab) -> Iterator[dict[str, str]]:
    """Slurm's reason → the id of a job that has it."""
    wide, wide_id = held(towline, "--nodes", "2", "--partition", "short")
    long, long_id = held(towline, "--time", "2h", "--partition", "interactive")
    kept, kept_id = held(towline)
    after, after_id = held(towline)
    found = {
        "PartitionNodeLimit": wide,
        "PartitionTimeLimit": long,
        "JobHeldAdmin": kept,
        "DependencyNeverSatisfied": after,
    }
    limits = {"short": ("MaxNodes", "1", "UNLIMITED"), "interactive": ("MaxTime", "10", "120")}
    try:
        for partition, (name, value, _) in limits.items():
            control(lab, "update", f"PartitionName={partition}", f"{name}={value}")
        control(lab, "hold", kept_id)
        failed = as_alice(lab, "sbatch --parsable -o /dev/null --wrap false")
        as_alice(lab, f"scontrol update JobId={after_id} Dependency=afterok:{failed}")
        as_alice(lab, f"scontrol release {wide_id} {long_id} {after_id}")
        with fault(lab, "prolog-fail", "node3"):
            found["launch failed requeued held"] = run(towline, "--retries", "0", "--nodelist", "node3")
            yield found
    finally:
        towline("cancel", *found.values())
        for partition, (name, _, value) in limits.items():
            control(lab, "update", f"PartitionName={partition}", f"{name}={value}")


def run(towline: Terminal, *options: str) -> str:
    """A job that is followed until `run` says aloud that it will not start."""
    with towline.start("run", *options, "--", "true") as running:
        assert running.stderr is not None
        told = next(line for line in running.stderr if "will NOT start" in line)
        assert all(part in told for part in BLOCKED["launch failed requeued held"])
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate(timeout=PATIENCE)
    return rest.partition("towline logs -f ")[2].split()[0]


def control(lab: Lab, *words: str) -> None:
    """What the site's administrator does."""
    lab.run_on("ctl", ["scontrol", *words], check=True)


@pytest.mark.parametrize("reason", BLOCKED)
def test_a_job_that_will_never_start_says_so_with_the_way_out(
    reason: str, jobs: dict[str, str], towline: Terminal
) -> None:
    job, (sentence, way_out) = jobs[reason], BLOCKED[reason]
    towline.until(job, lambda each: each["attempts"][-1]["reason"] == reason)
    waiting = towline.job(job)["summary"]["waiting"]
    assert (waiting["blocked"], bool(waiting["way_out"])) == (True, True)
    row = next(line for line in towline("ps").out.splitlines() if line.startswith(job))
    assert "BLOCKED: " in row
    texts = [row, towline("status", job).out, towline("why", job).out]
    assert all(sentence in text and way_out in text for text in texts), texts
    assert "it will not start unless something is done" in texts[1]
    assert "will NOT start" in texts[2]
    events = [each for each in towline("events", "--json", job).lines if each["event"] == "waiting"]
    assert (events[-1]["details"]["reason"], events[-1]["details"]["blocked"]) == (reason, True)
