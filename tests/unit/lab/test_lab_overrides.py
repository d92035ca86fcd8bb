"""Lines of faults over the lab's configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest

from towline.lab import overrides
from towline.lab.layout import Layout

SLURM = "ClusterName=lab\nJobRequeue=1\nPartitionName=a\nPartitionName=b\n"


@pytest.mark.parametrize(
    ("text", "lines", "becomes"),
    [
        (SLURM, "JobRequeue=0", "ClusterName=lab\nJobRequeue=0\nPartitionName=a\nPartitionName=b\n"),
        (
            SLURM,
            "PartitionName=DEFAULT X=1\n",
            "ClusterName=lab\nJobRequeue=1\nPartitionName=DEFAULT X=1\nPartitionName=a\nPartitionName=b\n",
        ),
        ("Port 22\nUsePAM no\n", "MaxSessions 1", "MaxSessions 1\nPort 22\nUsePAM no\n"),
        ("Port 22\nPortal 1\n", "Port 23", "Port 23\nPortal 1\n"),
        ("root:x:0\nalice:x:1:/bin/bash\n", "alice:x:1:/bin/tcsh", "root:x:0\nalice:x:1:/bin/tcsh\n"),
        ("Port 22\n", "Port 23\nPort 24\n", "Port 24\n"),
        ("Port 22\n", "", "Port 22\n"),
        ("A=1\nB=2\n", "B=", "A=1\n"),
    ],
)
def test_a_line_takes_the_place_of_the_one_with_its_name(text: str, lines: str, becomes: str) -> None:
    assert overrides.with_lines(text, lines) == becomes


def test_faults_come_and_go_one_by_one(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert overrides.apply(layout, "f", "A=1\n") == "A=1\n"
    overrides.put(layout, "f", "first", "A=2\n")
    overrides.put(layout, "f", "second", "B=3\n")
    assert overrides.apply(layout, "f", "A=1\n") == "B=3\nA=2\n"
    overrides.take(layout, "f", "first")
    overrides.take(layout, "f", "first")
    assert overrides.apply(layout, "f", "A=1\n") == "B=3\nA=1\n"
