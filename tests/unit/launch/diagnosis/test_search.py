"""The search on the cluster's side: real shells and awks over real files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.launch.diagnosis.excerpts import Excerpt, excerpts
from towline.launch.diagnosis.rules import all_rules, search_script
from towline.launch.diagnosis.verdict import Facts, hits_of, judge

SHELLS = [words for words in (("dash",), ("bash", "--posix"), ("busybox", "sh")) if shutil.which(words[0]) is not None]
AWKS = [words for words in (("gawk",), ("mawk",), ("busybox", "awk")) if shutil.which(words[0]) is not None]
EXCERPTS = excerpts()


@dataclass(frozen=True)
class Place:
    """A directory with logs, the search and the rules."""

    path: Path

    def write(self, logs: Mapping[str, str | bytes]) -> None:
        for name, text in logs.items():
            file = self.path / "logs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def search(
        self,
        facts: Facts,
        *names: str,
        size: int = 10_000_000,
        shell: tuple[str, ...] = ("sh",),
        awk: tuple[str, ...] = ("awk",),
    ) -> list[list[str]]:
        (self.path / "facts").write_text(facts.lines())
        (self.path / "search.sh").write_bytes(search_script())
        (self.path / "rules").write_bytes(all_rules())
        tools = self.path / "-".join(awk)
        tools.mkdir(exist_ok=True)
        (tools / "awk").write_text(f'#!/bin/sh\nexec {" ".join(awk)} "$@"\n' if awk != ("awk",) else "")
        (tools / "awk").chmod(0o755)
        path = "/usr/bin:/bin" if awk == ("awk",) else f"{tools}:/usr/bin:/bin"
        words = ("search.sh", "rules", "facts", "20", str(size), "logs", *names)
        done = subprocess.run(
            [*shell, *words], cwd=self.path, capture_output=True, text=True, env={"PATH": path}, check=True
        )
        assert done.stderr == ""
        return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "logs").mkdir()
    return Place(tmp_path)


def agrees(place: Place, excerpt: Excerpt, shell: tuple[str, ...] = ("sh",), awk: tuple[str, ...] = ("awk",)) -> None:
    place.write(excerpt.logs)
    *_, verdict = place.search(excerpt.facts, *excerpt.logs, shell=shell, awk=awk)
    found = judge(excerpt.facts, [hit for name, text in excerpt.logs.items() for hit in hits_of(name, text)])
    assert found is not None
    expected = [found.kind, found.retry, "yes" if found.blames else "no", found.rule]
    assert verdict[1:5] == expected
    assert verdict[5:7] == [found.node or "-", "-" if found.rank is None else str(found.rank)]
    assert verdict[7] == (found.file or "-")


@pytest.mark.parametrize("excerpt", EXCERPTS[::6], ids=lambda each: each.name)
def test_search_and_python_come_to_the_same_verdict(place: Place, excerpt: Excerpt) -> None:
    agrees(place, excerpt)


@pytest.mark.parametrize("awk", AWKS, ids="-".join)
@pytest.mark.parametrize("shell", SHELLS, ids="-".join)
def test_every_shell_and_awk_does(tmp_path: Path, shell: tuple[str, ...], awk: tuple[str, ...]) -> None:
    for excerpt in EXCERPTS[5::40]:
        path = tmp_path / excerpt.name
        path.mkdir()
        agrees(Place(path), excerpt, shell, awk)
