"""Jobs with roles: each runs on its nodes, once; all end together, and the first that fails is named."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Any

import pytest

from tests.unit.launch.allocation import Allocation
from tests.unit.launch.test_ranks import wait_for
from towline.launch import records
from towline.launch.records import EndRecord
from towline.models.spec import JobSpec

LISTEN = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
WAIT = "exec sleep 60"


def place(allocation: Allocation, *roles: dict[str, Any]) -> Allocation:
    return allocation.place_plan(JobSpec.build(roles=roles, resources={"gpus_per_node": 8}))


def role(name: str, shell: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "shell": shell, **fields}


def log(allocation: Allocation, name: str) -> str:
    return (allocation.attempt(1) / "roles" / name / "main.out").read_text()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


SHOW = 'echo "$TOWLINE_ROLE $SLURMD_NODENAME $NODE_RANK/$NNODES $RANK/$WORLD_SIZE $MASTER_ADDR $NPROC_PER_NODE"'


def test_each_role_runs_on_its_nodes_and_knows_its_place(allocation: Allocation) -> None:
    place(
        allocation,
        role("policy", f'{SHOW}; echo "$TOWLINE_NODES_POLICY|$TOWLINE_NODES_ROLL_OUT|$TOWLINE_NODES_CTL"', nodes=2),
        role("roll-out", SHOW, env={"MASTER_ADDR": "own"}),
        role("ctl", SHOW, on="policy", tasks_per_node=2),
    )
    assert allocation.run() == 0
    told = ["node5 node6|node7|node5"] * 2
    first, second = "policy node5 0/2 0/2 node5 8", "policy node6 1/2 1/2 node5 8"
    assert sorted(log(allocation, "policy").splitlines()) == sorted([*told, first, second])
    assert log(allocation, "roll-out") == "roll-out node7 0/1 0/1 own 8\n"
    assert sorted(log(allocation, "ctl").splitlines()) == [f"ctl node5 0/1 {rank}/2 node5 8" for rank in range(2)]
    assert allocation.end() == EndRecord("done", 0)
    assert "role policy starts on node5 node6" in allocation.err()


def test_ports_of_roles_differ(allocation: Allocation) -> None:
    place(allocation, role("a", 'echo "$MASTER_PORT"'), role("b", 'echo "$MASTER_PORT"', on="a"))
    assert allocation.run() == 0
    assert int(log(allocation, "b")) == int(log(allocation, "a")) + 1


def test_the_first_role_that_fails_gives_the_code_and_the_others_are_ended(allocation: Allocation) -> None:
    failing = 'until [ -e ready ]; do sleep 0.02; done; [ "$RANK" = 1 ] && exit 7; exec sleep 60'
    place(
        allocation,
        role("ctl", "trap 'echo told; exit 3' TERM; : >ready; while :; do sleep 0.02; done", service=True),
        role("work", failing, nodes=2),
        role("more", WAIT),
    )
    assert allocation.run() == 7
    assert allocation.end() == EndRecord("failed", 7, 1, "exit", "work")
    assert log(allocation, "ctl") == "told\n"


def test_an_echo_in_another_role_is_not_blamed(allocation: Allocation) -> None:
    """Both have left when the supervisor looks again, the one that failed second stands first."""
    echo = "until [ -e failed ]; do sleep 0.01; done; exit 9"
    place(
        allocation,
        role("echo", echo),
        role("cause", "until [ -e go ]; do sleep 0.01; done; (sleep 0.1; : >failed) & exit 4"),
    )
    (allocation.directory / "go").touch()
    assert allocation.run() == 4
    assert allocation.end() == EndRecord("failed", 4, 0, "exit", "cause")


def test_ranks_are_told_from_those_of_a_role_that_was_ended_later(allocation: Allocation) -> None:
    """Each role has a rank 0, and the node of one is blamed and left out."""
    lost = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
    place(allocation, role("actor", WAIT), role("learner", f"echo '{lost}' >&2; exit 1"))
    allocation.run()
    end = allocation.end()
    assert end is not None
    assert end.role == "learner"
    facts = (allocation.attempt(1) / "facts").read_text().splitlines()
    assert [line for line in facts if line.startswith("on ")] == ["on 0 node6"]


def test_a_service_is_ended_when_the_others_are_done(allocation: Allocation) -> None:
    place(allocation, role("ctl", WAIT, service=True), role("work", "echo done", nodes=2))
    assert allocation.run() == 0
    assert allocation.end() == EndRecord("done", 0)
    exits = allocation.attempt(1) / "roles/ctl/exit/0"
    assert exits.read_text() == "143 signal node5\n"


def test_a_service_that_leaves_early_with_0_has_failed_the_job(allocation: Allocation) -> None:
    place(allocation, role("ctl", "exit 0", service=True, linger=1), role("work", WAIT))
    assert allocation.run() == 1
    assert allocation.end() == EndRecord("failed", 1, None, "left", "ctl")


def test_what_fails_for_want_of_a_service_is_not_blamed(allocation: Allocation) -> None:
    place(
        allocation,
        role("ctl", ": >gone", service=True),
        role("work", "until [ -e gone ]; do sleep 0.02; done; sleep 2; exit 8"),
    )
    assert allocation.run() == 8
    assert allocation.end() == EndRecord("failed", 8, None, "left", "ctl")


def test_a_service_that_leaves_at_the_end_is_no_failure(allocation: Allocation) -> None:
    place(
        allocation,
        role("ctl", ": >gone", service=True),
        role("work", "until [ -e gone ]; do sleep 0.02; done; sleep 1"),
    )
    assert allocation.run() == 0


def test_roles_wait_until_one_listens(allocation: Allocation) -> None:
    port = free_port()
    ask = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('answered')"
    serve = {"name": "ctl", "command": [sys.executable, "-c", f"import time; time.sleep(0.5)\n{LISTEN}", str(port)]}
    place(
        allocation,
        {**serve, "service": True, "ready_port": port},
        {"name": "work", "command": [sys.executable, "-c", ask]},
    )
    assert allocation.run() == 0
    assert log(allocation, "work") == "answered\n"
    assert "role ctl is ready" in allocation.err()


@pytest.mark.parametrize(
    ("shell", "timeout", "told"),
    [(WAIT, 1, "it had 1 s"), ("true", 60, "before it ended")],
    ids=["never", "ended before"],
)
def test_a_role_that_does_not_get_ready(allocation: Allocation, shell: str, timeout: int, told: str) -> None:
    place(allocation, role("ctl", shell, ready_port=free_port(), ready_timeout=timeout), role("work", "echo ran"))
    assert allocation.run() == 1
    assert allocation.end() == EndRecord("failed", 1, None, "not-ready", "ctl")
    assert told in allocation.err()
    assert not (allocation.attempt(1) / "roles/work").exists()


def test_a_port_that_somebody_else_has_is_told_and_nothing_runs(allocation: Allocation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place(allocation, role("ctl", "echo ran", ready_port=port), role("work", WAIT))
        assert allocation.run() == records.UNUSABLE
    assert allocation.end() == EndRecord("failed", records.UNUSABLE, 0, "exit", "ctl")
    assert f"port {port} of node5 is in use" in (allocation.attempt(1) / "roles/ctl/main.err").read_text()
    assert log(allocation, "ctl") == ""


def test_term_reaches_every_role_and_the_end_says_stopped(allocation: Allocation) -> None:
    save = "trap 'echo saved; exit 0' TERM; : >ready.$TOWLINE_ROLE.$RANK; while :; do sleep 0.02; done"
    job = place(allocation, role("a", save), role("b", save, nodes=2)).start()
    for each in ("a.0", "b.0", "b.1"):
        wait_for(allocation.directory / f"ready.{each}")
    job.terminate()
    assert job.wait(timeout=60) == 143
    assert allocation.end() == EndRecord("stopped", 143, None, "stopped")
    assert (log(allocation, "a"), log(allocation, "b")) == ("saved\n", "saved\nsaved\n")


def test_a_signal_of_the_users_reaches_every_role(allocation: Allocation) -> None:
    save = "trap 'echo got; exit 0' USR1; : >ready.$TOWLINE_ROLE; while :; do sleep 0.02; done"
    job = place(allocation, role("a", save), role("b", save)).start()
    wait_for(allocation.directory / "ready.a")
    wait_for(allocation.directory / "ready.b")
    job.send_signal(signal.SIGUSR1)
    assert job.wait(timeout=60) == 0
    assert (log(allocation, "a"), log(allocation, "b")) == ("got\n", "got\n")


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ("node[5-6]", ["node5", "node6"]),
        ("gpu[08-10,12],login1", ["gpu08", "gpu09", "gpu10", "gpu12", "login1"]),
        ("r[1-2]n[1,3]-ib", ["r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"]),
    ],
)
def test_where_nodes_may_not_run_scontrol_the_hosts_are_known_all_the_same(
    allocation: Allocation, nodes: str, names: list[str]
) -> None:
    (allocation.tools / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    place(allocation, role("a", "printenv TOWLINE_NODES_A", nodes=len(names)))
    assert allocation.run(SLURM_JOB_NODELIST=nodes) == 0
    assert log(allocation, "a").splitlines() == [" ".join(names)] * len(names)


def test_without_names_of_hosts_nothing_starts(allocation: Allocation) -> None:
    (allocation.tools / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    place(allocation, role("a", "echo ran"))
    assert allocation.run(SLURM_JOB_NODELIST="") == records.UNUSABLE
    assert "the roles cannot be placed" in allocation.err()


def test_a_container_that_does_not_start_is_named_with_its_role(allocation: Allocation) -> None:
    place(allocation, role("a", "echo ran"))
    assert allocation.run(SLURM_STUB_FAILS="1") == 1
    assert allocation.end() == EndRecord("failed", 1, None, "launch", "a")
