"""From facts and found lines to a diagnosis. Pure; `search.sh` comes to the same class by the same order of rules."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from towline.launch.diagnosis.rules import Rule, Strength, rules
from towline.models.diagnosis import Diagnosis, FaultClass, Retry

ELSEWHERE = "elsewhere"
"""What a rule needs that counts for lines about a host that is none of the job's."""
COVERED = 6000
"""Bytes behind a line that covers an exception in which that one has to stand, and that a text told has at most."""

_NO_WORK: tuple[Strength, ...] = ("place", "follows")
"""Strengths of harmless rules whose lines do not show that the program went on."""


@dataclass(frozen=True)
class Facts:
    """What is known of an attempt beside its logs.

    Attributes:
        slurm: lines `KEY=VALUE` of Slurm's, see `towline.launch.diagnosis`.
        end: lines `KEY=VALUE` of the job's own record of its end.
        nodes: names of the allocation's nodes.
        rank: the rank that failed by itself first; None when not known.
        places: log file → the node that wrote it.
        ranks: rank → its node, as far as that is known.
    """

    slurm: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    rank: int | None = None
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    ranks: Mapping[int, str] = field(default_factory=dict[int, str])

    def lines(self) -> str:
        """The facts as `search.sh` reads them."""
        return "".join(
            f"{line}\n"
            for line in (
                *([f"nodes {' '.join(self.nodes)}"] if self.nodes else []),
                *([f"rank {self.rank}"] if self.rank is not None else []),
                *(f"at {file} {node}" for file, node in self.places.items()),
                *(f"on {rank} {node}" for rank, node in self.ranks.items()),
                *(f"slurm {_one_line(each)}" for each in self.slurm),
                *(f"end {_one_line(each)}" for each in self.end),
            )
        )


def parse_facts(lines: Iterable[str]) -> Facts:
    """Read what `Facts.lines` writes; later lines win."""
    told: dict[str, list[str]] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        told.setdefault(kind, []).append(rest.strip())
    pairs = [rest.split(" ") for rest in told.get("on", ()) if rest.count(" ") == 1]
    rank = next((rest for rest in reversed(told.get("rank", [])) if rest.isdecimal()), None)
    return Facts(
        slurm=tuple(told.get("slurm", ())),
        end=tuple(told.get("end", ())),
        nodes=tuple(told["nodes"][-1].split()) if "nodes" in told else (),
        rank=None if rank is None else int(rank),
        places=dict(rest.split(" ") for rest in told.get("at", ()) if rest.count(" ") == 1),
        ranks={int(rank): node for rank, node in pairs if rank.isdecimal()},
    )


@dataclass(frozen=True)
class Hit:
    """A line or a fact that a rule knows.

    Attributes:
        rule: the rule.
        text: the line.
        file: its log file; empty for a fact.
        offset: where the line begins there.
    """

    rule: Rule
    text: str
    file: str = ""
    offset: int | None = None


_TURNS: Mapping[Strength, int] = {"first": 0, "own": 1, "with": 1, "covers": 1, "general": 2, "place": 2, "follows": 2}


def rule_of(text: str, where: str = "log") -> Rule | None:
    """The rule that knows a line: the first of those that are asked first."""
    known = [
        rule
        for rule in rules()
        if rule.where == where and (not rule.needs or where == "last") and rule.regex.search(text)
    ]
    return min(known, key=lambda rule: (_TURNS[rule.strength], rule.order), default=None)


@dataclass
class _LastWords:
    """The error that a log ends with, and where the known lines end that follow it without a gap.

    They are echoes, and words of Slurm and the launcher: the program itself did nothing more.
    """

    hit: Hit | None = None
    end: int = 0

    def follow(self, offset: int, size: int) -> None:
        """Such a line; an empty one may stand before it."""
        if offset > self.end + 1:
            self.hit = None
        self.end = offset + size + 1


def hits_of(file: str, text: str) -> Iterator[Hit]:
    """What the rules know of a log's text."""
    covered, quoted, offset = -1, -1, 0
    words, over = _LastWords(), False
    beside = [rule for rule in rules() if rule.where == "log" and rule.needs]
    for line in text.split("\n"):
        rule, border = rule_of(line), rule_of(line, "quote")
        size = len(line.encode("utf-8", "surrogateescape"))
        if rule and (rule.kind or rule.strength in _NO_WORK):
            words.follow(offset, size)
            over = over or rule.kind == "time"
        if not (rule and not rule.kind and rule.strength == "first"):
            yield from (Hit(each, line, file, offset) for each in beside if each.regex.search(line))
        quoted = quoted if not border else offset + COVERED if border.strength == "covers" else -1
        if rule and rule.kind not in (None, "user") and offset <= quoted:
            rule = None
        if rule and rule.strength == "covers":
            covered = offset + COVERED
        elif rule and rule.kind and rule.strength == "general" and offset <= covered:
            covered = covered if rule.name == "traceback" else -1
        elif rule and (rule.kind or rule.strength == "place"):
            yield Hit(rule, line, file, offset)
            if rule.kind == "user" and not over and (last := rule_of(line, "last")):
                words.hit = Hit(last, line, file, offset)
        offset += size + 1
    if words.hit and words.end + 1 >= offset - 1:
        yield words.hit


def judge(facts: Facts, hits: Iterable[Hit], *, partial: bool = False) -> Diagnosis | None:
    """The diagnosis: the rule that stands first is the cause; None when nothing is known.

    Of several lines of one rule the one of the rank that failed first counts, else the first.
    """
    told = list(hits)
    facts = _with_ranks(facts, told)
    found = [*told, *_fact_hits("slurm", facts.slurm), *_fact_hits("end", facts.end)]
    names = {hit.rule.name for hit in found}
    found = [hit for hit in found if hit.rule.kind and _counts(hit, names, facts)]
    if not found:
        return None
    best = min(range(len(found)), key=lambda at: (found[at].rule.order, _other_rank(found[at], facts), at))
    hit, rule = found[best], found[best].rule
    guilty, shared = _guilty(rule, [each for each in found if each.rule is rule], facts)
    rank = rank_of(hit)
    kind, retry = _weighed(rule, guilty, shared=shared, several=len(facts.nodes) > 1)
    return Diagnosis(
        kind=kind,
        rule=rule.name,
        means=rule.means,
        advice=rule.advice,
        evidence=hit.text.strip()[:500],
        file=hit.file,
        offset=hit.offset,
        rank=facts.rank if rank is None else rank,
        node=guilty[0] if guilty else node_of(hit, facts) or _first_node(facts),
        retry=retry,
        blames=bool(guilty),
        partial=partial,
    )


def _counts(hit: Hit, names: Container[str], facts: Facts) -> bool:
    """Whether the line is about this attempt, and what the rule needs beside it is there."""
    needs = hit.rule.needs
    if is_of_another_attempt(hit.text, facts):
        return False
    return is_elsewhere(hit.text, facts) if needs == ELSEWHERE else not needs or needs in names


def _fact_hits(where: str, lines: Sequence[str]) -> Iterator[Hit]:
    beside = [rule for rule in rules() if rule.where == where and rule.needs]
    for line in lines:
        rule = rule_of(line, where)
        yield from (Hit(each, line) for each in (rule, *beside) if each and each.kind and each.regex.search(line))


def _with_ranks(facts: Facts, hits: Iterable[Hit]) -> Facts:
    """The facts with the nodes of the ranks that srun told about at their end, where they recorded none themselves.

    Each role has a rank 0, and srun tells of all of them.
    """
    ranks: dict[int, str] = {}
    for hit in hits:
        if found := _TASKS.search(hit.text):
            ranks |= dict.fromkeys(_numbers(found[2]), found[1])
    return replace(facts, ranks={**ranks, **facts.ranks})


def _numbers(text: str) -> Iterator[int]:
    """`0,8-11` → 0, 8, 9, 10, 11."""
    for part in text.split(","):
        low, _, high = part.partition("-")
        if low.isdecimal() and (not high or high.isdecimal()):
            yield from range(int(low), min(int(high or low), int(low) + 100_000) + 1)


def _other_rank(hit: Hit, facts: Facts) -> bool:
    return facts.rank is None or rank_of(hit) != facts.rank


def _guilty(rule: Rule, hits: Sequence[Hit], facts: Facts) -> tuple[tuple[str, ...], bool]:
    """The nodes to blame, and whether all of several nodes have the fault, which is no one's of them then."""
    if rule.blame == "no":
        return (), False
    named = tuple(dict.fromkeys(node for hit in hits if (node := node_of(hit, facts))))
    if not named and (first := _first_node(facts)):
        named = (first,)
    several = len(facts.nodes) > 1
    if several and len(named) >= len(facts.nodes):
        return (), True
    if rule.blame == "alone" and len(named) > 1:
        return (), False
    return (named if several or rule.blame in ("yes", "uneven") else ()), False


def _first_node(facts: Facts) -> str:
    """Where the rank ran that failed first: a line that names nobody is most likely that one's."""
    return "" if facts.rank is None else facts.ranks.get(facts.rank, "")


def _weighed(rule: Rule, guilty: Sequence[str], *, shared: bool, several: bool) -> tuple[FaultClass, Retry]:
    """Class and retry, when it is known whether the rule's lines are one node's."""
    kind: FaultClass = rule.kind or "ambiguous"
    if rule.blame == "alone" and guilty:
        return "node", "yes"
    if rule.blame == "uneven" and several and not guilty:
        return "user", "no"
    if kind == "node" and shared:
        return "infrastructure", rule.retry
    return kind, rule.retry


_RANK = re.compile(r"\[(?:rank)? ?(\d+)\]:|\[[Rr]ank ?(\d+)\]|task (\d+):|^ *(\d+): ")
_RANKS_FILE = re.compile(r"(?:^|/)ranks?[-/](\d+)")
_NODES_FILE = re.compile(r"(?:^|/)(?:ranks|nodes)/\d+-([A-Za-z0-9_.-]+)\.(?:out|err)$")
_TASKS = re.compile(r"^srun: error: ([^ :]+): tasks? ([0-9,-]+): ")
_PEER = re.compile(r"(?:to|at) [(\[]*([A-Za-z][A-Za-z0-9.-]*)\]?[,:] ?\d")
_BECAME_OF = re.compile(
    r"\*\*\* (?:JOB|STEP) [^ ]+ ON ([^ ]+) CANCELLED|srun: error: Node failure on ([A-Za-z0-9.-]+)$"
)
_NAMED = re.compile(r"slurmstepd-([A-Za-z0-9.-]+):|srun: error: ([A-Za-z0-9.-]+): task|ailure on ([A-Za-z0-9.-]+)")


def rank_of(hit: Hit) -> int | None:
    """The rank that a line names, in the ways of torchrun, `srun --label` and srun's own errors; else its file's."""
    found = _RANK.search(hit.text) or _RANKS_FILE.search(hit.file)
    return int(next(each for each in found.groups() if each)) if found else None


def node_of(hit: Hit, facts: Facts) -> str:
    """The node that a line names, of those of the job; else the one that wrote the file, or the only one."""
    words = set(re.split(r"[^A-Za-z0-9.-]+", hit.text))
    words |= {word.partition(".")[0] for word in words} | {word.removeprefix("slurmstepd-") for word in words}
    named = [node for node in facts.nodes if node in words]
    if len(named) == 1:
        return named[0]
    speaker = re.match(r"(?:\[?[a-z]+\]? )?([A-Za-z0-9.-]+): ", hit.text)
    if speaker and speaker[1] in named:
        return speaker[1]
    if not facts.nodes and (found := _NAMED.search(hit.text)):
        return next(each for each in found.groups() if each)
    only = facts.nodes[0] if len(facts.nodes) == 1 else ""
    if named_so := _NODES_FILE.search(hit.file):
        return named_so[1]
    rank = rank_of(hit)
    return facts.places.get(hit.file) or only or ("" if rank is None else facts.ranks.get(rank, ""))


def is_elsewhere(text: str, facts: Facts) -> bool:
    """Whether the line names a host and port to connect to, and the host is none of the job's."""
    found = _PEER.search(text)
    name = found[1].partition(".")[0] if found else "localhost"
    return bool(facts.nodes) and name != "localhost" and name not in {node.partition(".")[0] for node in facts.nodes}


def is_of_another_attempt(text: str, facts: Facts) -> bool:
    """Whether Slurm says what became of a node that is none of the job's: it was one of an earlier attempt."""
    found = _BECAME_OF.search(text)
    name = found[1] or found[2] if found else ""
    return bool(facts.nodes and name) and name.partition(".")[0] not in {node.partition(".")[0] for node in facts.nodes}


def _one_line(text: str) -> str:
    return " ".join(text.split())
