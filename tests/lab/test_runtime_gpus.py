"""nvidia-smi on the lab's nodes and in containers on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.login import srun
from towline.lab import Lab
from towline.lab.layout import GPU_NODES, GPUS_PER_NODE

BUSYBOX = "--container-image=/lustre/images/busybox.sqsh"
PYTHON = "--container-image=/lustre/images/python.sqsh"
NODE = GPU_NODES[0].name


@pytest.fixture
def faults(lab: Lab) -> Iterator[Path]:
    folder = lab.paths.state / "faults" / f"gpu.{NODE}"
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("container", [[], [BUSYBOX], [PYTHON]], ids=["node", "busybox", "python"])
def test_every_gpu_of_the_node_is_listed(lab: Lab, container: list[str]) -> None:
    listed = srun(lab, "-N1", f"-w{NODE}", *container, "nvidia-smi", "-L").stdout.splitlines()
    assert [line.partition(":")[0] for line in listed] == [f"GPU {index}" for index in range(GPUS_PER_NODE)]
    assert len({line.partition("UUID: ")[2] for line in listed}) == GPUS_PER_NODE


def test_nodes_have_gpus_of_their_own(lab: Lab) -> None:
    uuids = srun(
        lab, "-N4", "--ntasks-per-node=1", "nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"
    ).stdout.split()
    assert len(set(uuids)) == 4 * GPUS_PER_NODE


def test_a_query_has_a_header_and_units_unless_told_otherwise(lab: Lab) -> None:
    ask = ["nvidia-smi", "-i", "3", "--query-gpu=index,name,memory.total,utilization.gpu"]
    assert srun(lab, *ask, "--format=csv").stdout.splitlines() == [
        "index, name, memory.total [MiB], utilization.gpu [%]",
        "3, NVIDIA H100 80GB HBM3, 81559 MiB, 0 %",
    ]
    assert srun(lab, *ask, "--format=csv,noheader,nounits").stdout == "3, NVIDIA H100 80GB HBM3, 81559, 0\n"


def test_an_unknown_field_is_refused(lab: Lab) -> None:
    done = srun(lab, "nvidia-smi", "--query-gpu=bogus", "--format=csv")
    assert done.returncode == 2
    assert done.stdout == 'Field "bogus" is not a valid field to query.\n'


def test_the_table_has_straight_edges(lab: Lab) -> None:
    lines = srun(lab, "nvidia-smi").stdout.splitlines()[1:]
    assert {len(line) for line in lines if line} == {91}
    assert sum("NVIDIA H100 80GB HBM3" in line for line in lines) == GPUS_PER_NODE


def test_a_node_without_gpus_has_no_nvidia_smi(lab: Lab) -> None:
    done = srun(lab, "-p", "cpu", "nvidia-smi")
    assert done.returncode == 2
    assert "execve(): nvidia-smi: No such file or directory" in done.stderr


@pytest.mark.parametrize("container", [[], [BUSYBOX]], ids=["node", "container"])
def test_a_gpu_can_be_made_to_count_errors(lab: Lab, faults: Path, container: list[str]) -> None:
    (faults / "2").mkdir(parents=True)
    (faults / "2" / "ecc.errors.uncorrected.volatile.total").write_text("4\n")
    ask = ["nvidia-smi", "--query-gpu=ecc.errors.uncorrected.volatile.total", "--format=csv,noheader"]
    counted = srun(lab, "-N1", f"-w{NODE}", *container, *ask).stdout.split()
    assert counted == ["4" if index == 2 else "0" for index in range(GPUS_PER_NODE)]


def test_a_driver_can_be_broken(lab: Lab, faults: Path) -> None:
    (faults / "broken").write_text("Failed to initialize NVML: Driver/library version mismatch\n")
    done = srun(lab, "-N1", f"-w{NODE}", "nvidia-smi")
    assert done.returncode == 9
    assert done.stdout == "Failed to initialize NVML: Driver/library version mismatch\n"
