"""The rows of the fault matrix, in the order of its table in the documentation."""

from __future__ import annotations

from harness.chaos.healing import rows_clients, rows_cluster, rows_jobs
from harness.chaos.healing.table import Row
from towline.lab.kernel import has_cgroup_v1

ROWS: tuple[Row, ...] = (*rows_cluster.TABLE, *rows_jobs.TABLE, *rows_clients.TABLE)


def rows() -> list[Row]:
    """Those that can be had here."""
    return [each for each in ROWS if has_cgroup_v1() or not each.needs_cgroups]
