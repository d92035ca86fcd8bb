"""Faults of GPUs and of the containers that are to have them, as a job meets them."""

from __future__ import annotations

import pytest

from tests.lab.faulty import as_alice, fault, try_as_alice
from towline.lab import Lab
from towline.lab.layout import GPUS_PER_NODE

CONTAINER = "--container-image=/lustre/images/busybox.sqsh"


@pytest.mark.parametrize("options", ["", CONTAINER], ids=["node", "container"])
def test_a_lost_gpu_does_not_answer_and_the_others_do(lab: Lab, options: str) -> None:
    with fault(lab, "gpu-lost", "node2", "3"):
        done = try_as_alice(lab, f"srun -w node2 {options} nvidia-smi -L")
        assert done.returncode == 15
        lines = done.stdout.splitlines()
        assert lines[3].startswith("Unable to determine the device handle for GPU 00000000:4B:00.0: GPU is lost.")
        assert [line.startswith("GPU ") for line in lines].count(True) == GPUS_PER_NODE - 1
        assert try_as_alice(lab, f"srun -w node2 {options} nvidia-smi").returncode == 15
        assert as_alice(lab, f"srun -w node2 {options} nvidia-smi -i 2 -L").startswith("GPU 2")
        assert len(as_alice(lab, f"srun -w node1 {options} nvidia-smi -L").splitlines()) == GPUS_PER_NODE
    assert len(as_alice(lab, f"srun -w node2 {options} nvidia-smi -L").splitlines()) == GPUS_PER_NODE


def test_a_job_sees_an_xid_error_in_its_nodes_kernel_log(lab: Lab) -> None:
    with fault(lab, "gpu-xid", "node1", "79", "1"):
        line = "NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
        assert as_alice(lab, "srun -w node1 dmesg").endswith(f"] {line}")
        assert as_alice(lab, "srun -w node1 cat /var/log/kern.log").endswith(f"] {line}")
        assert as_alice(lab, "srun -w node2 dmesg") == ""
        with fault(lab, "gpu-xid", "node1", "31"):
            assert "Xid (PCI:0000:1b:00): 31," in as_alice(lab, "srun -w node1 dmesg")
    assert as_alice(lab, "srun -w node1 dmesg") == ""


def test_a_gpu_counts_memory_errors(lab: Lab) -> None:
    query = "srun -w node1 nvidia-smi --query-gpu=ecc.errors.uncorrected.volatile.total --format=csv,noheader"
    with fault(lab, "gpu-ecc", "node1", "5"):
        assert as_alice(lab, query).split() == ["4" if gpu == 5 else "0" for gpu in range(GPUS_PER_NODE)]
        assert "Xid (PCI:0000:6b:00): 48," in as_alice(lab, "srun -w node1 dmesg")
    assert as_alice(lab, query).split() == ["0"] * GPUS_PER_NODE


def test_containers_do_not_start_on_one_node(lab: Lab) -> None:
    with fault(lab, "hook-fail", "node3"), fault(lab, "hook-fail", "node4"):
        done = try_as_alice(lab, f"srun -w node3 {CONTAINER} echo started")
        assert done.returncode == 1
        assert "started" not in done.stdout
        assert "98-nvidia.sh exited with return code 1" in done.stderr
        assert "nvml error: driver/library version mismatch" in done.stderr
        assert as_alice(lab, f"srun -w node2 {CONTAINER} echo started") == "started"
        lab.fault_off("hook-fail", "node3")
        assert as_alice(lab, f"srun -w node3 {CONTAINER} echo started") == "started"
        assert try_as_alice(lab, f"srun -w node4 {CONTAINER} true").returncode == 1
    assert as_alice(lab, f"srun -w node4 {CONTAINER} echo started") == "started"
