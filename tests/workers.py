"""Which of several workers has which tests."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling


class LabApart(LoadScopeScheduling):
    """Deals out tests file by file; those on the lab, of which there is one, all go to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "lab" if file.startswith("tests/lab/") else file
