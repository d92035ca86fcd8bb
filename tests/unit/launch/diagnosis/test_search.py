"""The search on the cluster's side: real shells and awks over real files."""

from __future__ import annotations

import base64
import random
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
        (path / "logs").mkdir(parents=True)
        agrees(Place(path), excerpt, shell, awk)


NOISE = b"step 17 loss 0.3 lr 1e-4 gpu 99% 12.1 it/s\n"


def verdict_of(answer: list[list[str]]) -> list[str]:
    assert answer[-1][0] == "verdict"
    return answer[-1][1:]


def test_nothing_that_any_rule_knows(place: Place) -> None:
    place.write({"main.out": NOISE})
    assert place.search(Facts()) == [
        ["file", "main.out", str(len(NOISE))],
        ["verdict", "none", "no", "no", "-", "-", "-", "-", "-", "-"],
    ]


def test_a_directory_without_logs_is_judged_by_the_facts(place: Place) -> None:
    found = verdict_of(place.search(Facts(slurm=("state=NODE_FAIL",), nodes=("gpu1",))))
    assert found[:5] == ["node", "yes", "yes", "node-fail", "gpu1"]


def test_the_offset_of_a_line_behind_progress_bars_and_colours_is_its_own(place: Place) -> None:
    before = b"\x00binary\n" + b"".join(b"\r%3d%%|#####  | 12.1it/s" % each for each in range(101)) + b"\r"
    place.write({"main.err": before + b"\x1b[31mKeyError: 'caption'\x1b[0m\n"})
    found = verdict_of(place.search(Facts()))
    assert found[3] == "python-exception"
    assert found[6:] == ["main.err", str(len(before)), "KeyError: 'caption'"]


def test_long_logs_are_read_at_both_ends_and_short_ones_whole(place: Place) -> None:
    early, late = b"ModuleNotFoundError: No module named 'apex'\n", b"torch.OutOfMemoryError: CUDA out of memory.\n"
    middle = b"RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    noise = NOISE * 20_000
    place.write({"main.out": early + noise + middle + noise + late, "main.err": b"x\n" * 10_000})
    answer = place.search(Facts(), size=200_000)
    assert ["partial", "main.out"] in answer
    assert ["partial", "main.err"] not in answer
    hits = {row[1]: int(row[3]) for row in answer if row[0] == "hit"}
    last = len(early + noise + middle + noise)
    assert (hits["module-missing"], hits["cuda-out-of-memory"]) == (0, last)
    assert set(hits.values()) == {0, last}  # what stands in the middle was not read
    whole = place.search(Facts(), size=10_000_000)
    assert verdict_of(whole)[3] == "ecc-uncorrectable"
    assert verdict_of(whole)[7] == str(len(early + noise))


def test_a_flood_of_one_message_does_not_hide_another(place: Place) -> None:
    flood = b"[rank0]:[E ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout\n" * 5000
    place.write({"main.err": flood + b"[rank3]: KeyError: 'caption'\n"})
    answer = place.search(Facts())
    assert verdict_of(answer)[:2] == ["user", "no"]
    assert len(answer) < 10


def test_a_message_of_every_step_does_not_use_up_what_the_search_looks_at(place: Place) -> None:
    chatter = b"".join(b"step %d [ERROR] could not open shard %d, skipped\n" % (at, at % 77) for at in range(25_000))
    place.write({"main.out": chatter + b"RuntimeError: CUDA error: uncorrectable ECC error encountered\n"})
    assert verdict_of(place.search(Facts()))[3] == "ecc-uncorrectable"


def test_a_note_counts_where_the_job_was_cancelled(place: Place) -> None:
    note = "comment=cancelled by ops: no GPU activity since 14:02"
    for state, rule in (("CANCELLED by 0", "note-idle"), ("TIMEOUT", "time-limit")):
        facts = Facts(slurm=(f"state={state}", note), nodes=("gpu1",))
        assert verdict_of(place.search(facts))[3] == rule
        found = judge(facts, [])
        assert found is not None
        assert found.rule == rule


def test_rank_and_node_are_read_from_the_names_of_files(place: Place) -> None:
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    place.write(
        {"main.err": "srun: error\n", "ranks/12-gpu2.err": xid, "roles/policy/ranks/0-gpu1.out": "KeyError: 1\n"}
    )
    found = verdict_of(place.search(Facts(nodes=("gpu1", "gpu2"))))
    assert found[:7] == ["node", "yes", "yes", "xid-hardware", "gpu2", "12", "ranks/12-gpu2.err"]


def test_a_fault_that_all_nodes_have_is_no_nodes(place: Place) -> None:
    hook = "slurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1\n"
    place.write({f"ranks/{rank}-gpu{rank}.err": hook for rank in (1, 2)})
    assert verdict_of(place.search(Facts(nodes=("gpu1", "gpu2"))))[2:5] == ["no", "hook-failed", "gpu1"]
    assert verdict_of(place.search(Facts(nodes=("gpu1", "gpu2", "gpu3"))))[2:5] == ["yes", "hook-failed", "gpu1"]


def test_of_equal_lines_the_first_failing_ranks_counts(place: Place) -> None:
    place.write({"main.err": "[rank1]: ValueError: echo\n[rank3]: ValueError: cause\n"})
    assert verdict_of(place.search(Facts(rank=3)))[8] == "[rank3]: ValueError: cause"
    assert verdict_of(place.search(Facts()))[8] == "[rank1]: ValueError: echo"


def test_the_ranks_own_record_of_its_node_counts_before_the_word_of_srun(place: Place) -> None:
    """Each role has a rank 0, and srun tells of all of them."""
    logs = {
        "roles/policy/main.err": "CUDA error: uncorrectable ECC error encountered\n",
        "roles/env/main.err": "srun: error: n2: task 0: Killed\n",
    }
    facts = Facts(nodes=("n1", "n2"), rank=0, ranks={0: "n1"})
    agrees(place, Excerpt("roles", "node", "yes", "yes", facts, logs))
    *_, verdict = place.search(facts, *logs)
    assert verdict[3:6] == ["yes", verdict[4], "n1"]


def test_a_traceback_that_python_only_tells_of_is_nothing(place: Place) -> None:
    place.write({"main.err": "Exception ignored in: <x>\nTraceback (most recent call last):\nAttributeError: x\n"})
    assert verdict_of(place.search(Facts()))[0] == "none"


def test_a_text_that_only_tells_of_faults_ends_with_its_file(place: Place) -> None:
    xid = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    place.write({"main.out": f"--- samples ---\n{xid}", "main.err": NOISE})
    assert verdict_of(place.search(Facts()))[0] == "none"
    place.write({"main.err": xid})
    assert verdict_of(place.search(Facts()))[:4] == ["node", "yes", "no", "xid-hardware"]


def test_only_the_named_files_are_read(place: Place) -> None:
    place.write({"main-1.err": "KeyError: 1\n", "main-2.err": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off\n"})
    assert verdict_of(place.search(Facts(), "main-1.err", "main-1.out", "task-1"))[0] == "user"


def test_text_in_which_no_line_is_like_another_does_not_use_up_the_time(place: Place) -> None:
    noise = random.Random(1).randbytes(4_000_000)
    logs = {"rank-0.out": base64.encodebytes(noise), "rank-1.out": noise, "rank-2.err": b"KeyError: 'x'\n"}
    place.write(logs)
    verdict = place.search(Facts(), *logs)[-1]
    assert verdict[1] == "user"
    assert verdict[7] == "rank-2.err"
