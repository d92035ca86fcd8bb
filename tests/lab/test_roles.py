"""Jobs with roles on real nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.terminal import Done, Terminal
from towline import Cluster, JobSpec
from towline.lab import Lab
from towline.tao.cosmos import cosmos_job

CONTROLLER = {
    "name": "controller",
    "on": "policy",
    "command": ["python3", "-m", "http.server", "8082"],
    "ready_port": 8082,
    "service": True,
}
SHOW = (
    'echo "$TOWLINE_ROLE $(uname -n) $RANK/$WORLD_SIZE $MASTER_ADDR [$TOWLINE_NODES_POLICY] [$TOWLINE_NODES_ROLLOUT]"'
)
ASK = "python3 -c \"import urllib.request as u; u.urlopen('http://$MASTER_ADDR:8082')\""


@pytest.fixture
def towline(lab: Lab, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "state")


def run(towline: Terminal, tmp_path: Path, *roles: dict[str, Any]) -> Done:
    (tmp_path / "job.json").write_text(json.dumps({"name": "rl", "roles": roles}))
    return towline("run", "--json", "-f", str(tmp_path / "job.json"))


def logs(done: Done) -> dict[str, list[str]]:
    """Role → lines of its stdout, without what the server says of itself."""
    found: dict[str, str] = {}
    for event in done.lines:
        if event["event"] == "log" and event["stream"] == "out" and event["role"] != "controller":
            found[event["role"]] = found.get(event["role"], "") + event["text"]
    return {role: sorted(text.splitlines()) for role, text in found.items()}


def test_three_roles_run_on_their_nodes_each_once(towline: Terminal, tmp_path: Path) -> None:
    policy = {"name": "policy", "nodes": 2, "shell": f"{SHOW}; {ASK}"}
    rollout = {"name": "rollout", "nodes": 2, "shell": SHOW, "env": {"MASTER_ADDR": "own"}}
    done = run(towline, tmp_path, CONTROLLER, policy, rollout)
    assert done.code == 0, done
    hosts = "[node1 node2] [node3 node4]"
    assert logs(done) == {
        "policy": [f"policy node1 0/2 node1 {hosts}", f"policy node2 1/2 node1 {hosts}"],
        "rollout": [f"rollout node3 0/2 own {hosts}", f"rollout node4 1/2 own {hosts}"],
    }


FAILS_WHEN_ALL_HAVE_BEGUN = """
echo "rank $RANK"
cd "$TOWLINE_RESULTS_DIR"
if [ "$RANK" = 0 ]; then : >rollout; exec sleep 300; fi
until [ -e rollout ] && [ -e policy ]; do sleep 0.1; done
exit 5
"""


def test_a_role_that_fails_is_named_and_ends_the_others(towline: Terminal, tmp_path: Path) -> None:
    rollout = {"name": "rollout", "nodes": 2, "shell": FAILS_WHEN_ALL_HAVE_BEGUN}
    begun = 'trap "echo told; exit 0" TERM; echo begun; : >"$TOWLINE_RESULTS_DIR/policy"; sleep 300 & wait'
    policy = {"name": "policy", "shell": begun}
    done = run(towline, tmp_path, CONTROLLER, policy, rollout)
    assert done.code == 5, done
    (job,) = [event["job"] for event in done.lines if event["event"] == "ended"]
    assert job["roles"] == ["controller", "policy", "rollout"]
    last = job["attempts"][-1]
    assert (last["failed_role"], last["failed_rank"], last["exit_source"]) == ("rollout", 1, "job")
    assert job["note"] == "role rollout failed first, on its rank 1, and the others were ended"
    assert logs(done) == {"policy": ["begun", "told"], "rollout": ["rank 0", "rank 1"]}
    assert sorted(towline("logs", "--role", "rollout", job["id"]).out.splitlines()) == ["rank 0", "rank 1"]
    everything = towline("logs", job["id"])
    assert "policy: begun\n" in everything.out
    assert "towline: role rollout has failed with exit code 5\n" in everything.err
    assert towline("logs", "--role", "nosuch", job["id"]).code == 64


WORKER = """
import json, os, urllib.request
role, hosts = os.environ["COSMOS_NODE_ROLE"], os.environ["LOCAL_NODE_LIST"].split(" ")
place = hosts.index(os.environ["SLURMD_NODENAME"])
for replica in json.loads(os.environ["NODE_LAUNCH_METADATA_" + role.upper()])[place]["colocation"]:
    urllib.request.urlopen("http://" + os.environ["COSMOS_CONTROLLER_HOST"])
    meet = hosts[replica["rendezvous_node"]]
    print(role, place, os.environ["NODE_RANK"], meet, replica["rendezvous_port"], replica["visible_gpus"])
"""
COSMOS = f"""case $COSMOS_NODE_ROLE in
controller) exec python3 -m http.server "$CONTROLLER_PORT" ;;
*) exec python3 -c '{WORKER}' ;;
esac"""


def test_cosmos_rl_finds_its_controller_and_its_replicas(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_STATE_DIR", str(tmp_path))
    parallel = {"policy": {"tp_size": 1, "n_init_replicas": 2}, "rollout": {"tp_size": 2, "pp_size": 2}}
    config = {role: {"parallelism": sizes} for role, sizes in parallel.items()}
    spec = JobSpec.build(shell=COSMOS, name="cosmos", resources={"gpus_per_node": 2, "time": "5m", "memory": "2G"})
    with Cluster.open("lab") as cluster:
        job = cluster.submit(cosmos_job(spec, {**config, "train": {"train_policy": {"type": "GRPO"}}}))
        assert job.wait(timeout=180).exit_code == 0
        found: dict[str, bytes] = {}
        for chunk in job.logs():
            found[chunk.role] = found.get(chunk.role, b"") + (chunk.data if chunk.stream == "out" else b"")
    assert found["policy"] == b"policy 0 0 node1 29345 [0]\npolicy 0 0 node1 29346 [1]\n"
    assert sorted(found["rollout"].decode().splitlines()) == [
        f"rollout {place} {place} node2 29345 [0, 1]" for place in range(2)
    ]
