"""What a user of the lab's Slurm can rely on being real."""

from __future__ import annotations

import pwd
import subprocess
from collections.abc import Iterator

import pytest

from towline.lab import Lab, kernel
from towline.lab.layout import ALICE, BOB, CLOUD_NODE, GPU_NODES, LOGINS, User
from towline.lab.process import until


def as_user(lab: Lab, command: str, user: User = ALICE, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return lab.run_on("login1", ["sh", "-c", command], user=user.name, timeout=timeout)


def output(lab: Lab, command: str) -> str:
    done = as_user(lab, command)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(lab: Lab, job: str) -> str:
    return output(lab, f"scontrol show job {job} -o").partition("JobState=")[2].split()[0]


@pytest.fixture
def job_name(request: pytest.FixtureRequest, lab: Lab) -> Iterator[str]:
    name = f"labtest-{request.node.name}"
    yield name
    as_user(lab, f"scancel --name={name}")


def test_a_step_runs_on_each_of_four_nodes(lab: Lab) -> None:
    ran_on = output(lab, "srun -N4 --ntasks-per-node=1 hostname").split()
    assert sorted(ran_on) == [node.name for node in GPU_NODES]


def test_each_login_host_answers_ssh_with_the_key_of_the_profile(lab: Lab) -> None:
    for host in LOGINS:
        options = ["-i", str(lab.paths.key(ALICE)), "-o", f"UserKnownHostsFile={lab.paths.known_hosts}"]
        strict = ["-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-F", "none"]
        done = subprocess.run(
            ["ssh", *options, *strict, f"alice@{host.aliases[0]}", "hostname; id -un; pwd"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.stdout.split() == [host.name, "alice", "/home/alice"], done.stderr


def test_cluster_users_are_unknown_to_the_machine(lab: Lab) -> None:
    with pytest.raises(KeyError):
        pwd.getpwnam(ALICE.name)
    assert output(lab, "id -u") == str(ALICE.uid)


def test_typed_gpus_are_handed_out(lab: Lab) -> None:
    assert output(lab, "srun --gres=gpu:h100:3 printenv CUDA_VISIBLE_DEVICES").count(",") == 2
    refused = as_user(lab, "srun --gres=gpu:9 true")
    assert refused.returncode != 0
    assert "Requested node configuration is not available" in refused.stderr


def test_a_user_without_an_association_is_refused_by_slurm(lab: Lab) -> None:
    refused = as_user(lab, "sbatch --wrap hostname", BOB)
    assert refused.returncode == 1
    assert "Invalid account" in refused.stderr


def test_an_association_has_its_qos_and_a_limit_that_holds(lab: Lab, job_name: str) -> None:
    assert (
        output(lab, f"sacctmgr -n -P show assoc user={ALICE.name} format=account,qos") == "research|limited,long,normal"
    )
    job = output(lab, f"sbatch --parsable -J {job_name} -q limited --gres=gpu:5 --output=/dev/null --wrap true")
    until(lambda: "QOSMaxGRESPerUser" in output(lab, f"squeue -h -j {job} -o %r"), 30, "the reason to wait")


def test_jobs_reach_accounting(lab: Lab, job_name: str) -> None:
    job = output(lab, f"sbatch --parsable --wait -J {job_name} --comment hello --output=/dev/null --wrap 'exit 0'")
    until(
        lambda: output(lab, f"sacct -n -P -X -j {job} -o state,account,comment") == "COMPLETED|research|hello",
        30,
        "the record",
    )


@pytest.mark.parametrize(("partition", "ends_as"), [("low", "PREEMPTED"), ("low_requeue", "PENDING")])
def test_an_urgent_job_preempts(lab: Lab, job_name: str, partition: str, ends_as: str) -> None:
    submit = f"sbatch --parsable -J {job_name} --output=/dev/null -w node4 --exclusive"
    victim = output(lab, f"{submit} -p {partition} --wrap 'sleep 300'")
    until(lambda: state(lab, victim) == "RUNNING", 60, "the start of the job to be preempted")
    output(lab, f"{submit} -p urgent --wait --wrap true")
    until(lambda: state(lab, victim) in {ends_as, "RUNNING"}, 30, "the preemption")
    restarts = output(lab, f"scontrol show job {victim} -o").partition("Restarts=")[2].split()[0]
    assert state(lab, victim) == ends_as or restarts == "1"


def test_a_cloud_node_boots_when_it_is_needed(lab: Lab) -> None:
    done = as_user(lab, f"timeout 90 srun -p {CLOUD_NODE.name[:-1]} hostname")
    assert done.stdout.strip() == CLOUD_NODE.name, done.stderr


def test_a_job_that_takes_too_much_memory_is_killed(lab: Lab, job_name: str) -> None:
    assert kernel.has_cgroup_v1(), "this machine's lab cannot confine memory; `lab status` says so"
    hog = "head -c 300M /dev/zero | tail | wc -c"
    job = as_user(lab, f"sbatch --parsable --wait -J {job_name} --mem=60M --output=/dev/null --wrap '{hog}'")
    assert state(lab, job.stdout.strip()) == "OUT_OF_MEMORY"


def test_a_full_disk_is_real(lab: Lab) -> None:
    full = "cd /lustre/alice && trap 'rm -f full more' EXIT; fallocate -l 1T full; head -c 1M /dev/zero >more"
    done = as_user(lab, full)
    assert done.returncode != 0
    assert done.stderr.count("No space left on device") == 2
    assert output(lab, "cd /lustre/alice && echo fits >note && cat note && rm note") == "fits"


def test_a_prolog_failure_is_real(lab: Lab, job_name: str) -> None:
    switch = lab.paths.state / "faults" / "prolog.node3"
    switch.touch()
    try:
        job = output(lab, f"sbatch --parsable -J {job_name} --output=/dev/null -w node3 --wrap true")
        until(lambda: "launch failed" in output(lab, f"squeue -h -j {job} -o %r"), 60, "the failed launch")
        assert lab.status().nodes["node3"].startswith("drain")
    finally:
        switch.unlink()
        lab.up()
    assert lab.status().nodes["node3"] == "idle"
