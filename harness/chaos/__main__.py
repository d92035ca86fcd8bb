"""`./chaos`: breaks things at random moments and says what did not hold."""

from __future__ import annotations

import argparse
import inspect
import json
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence

from harness.cases import load
from harness.chaos import cases
from harness.chaos.registry import CHAOS, Chaos, Run


def main(arguments: list[str]) -> int:
    """Run one chaos; 0 without violations, 1 with some, 64 when called wrongly."""
    load(cases)
    options = _parser().parse_args(arguments)
    if options.list or not options.name:
        for name in sorted(CHAOS):
            print(f"{name:16} {(inspect.getdoc(CHAOS[name].stage) or '').partition(chr(10))[0]}")
        return 0 if options.list else 64
    runs = options.runs or CHAOS[options.name].runs
    return _play(CHAOS[options.name], range(options.first, options.first + runs), options.seed)


def _play(chaos: Chaos, numbers: Sequence[int], seed: int) -> int:
    started = time.monotonic()
    violations: list[str] = []
    seen: Counter[str] = Counter()
    with chaos.stage() as story:
        for start in range(0, len(numbers), story.together):
            batch = [Run.of(number, seed) for number in numbers[start : start + story.together]]
            for run, sentences in zip(batch, story.play_together(batch), strict=True):
                found = [f"run {run.number}: {sentence}" for sentence in sentences]
                seen += run.seen
                print(f"-- {chaos.name} {run.number}/{numbers[-1]}: {'; '.join(found) or 'holds'}", file=sys.stderr)
                violations += found
        violations += [f"at the end: {sentence}" for sentence in story.settle()]
    result = {"name": chaos.name, "runs": len(numbers), "violations": len(violations), "seed": seed, "seen": dict(seen)}
    print(json.dumps({**result, "seconds": round(time.monotonic() - started, 1), "details": violations}), flush=True)
    return 1 if violations else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./chaos", description="Breaks things at random moments.")
    parser.add_argument("name", nargs="?", metavar="NAME", choices=sorted(CHAOS), help="see --list")
    parser.add_argument("--runs", type=int, metavar="N", help="how often; each chaos has its own default")
    parser.add_argument("--seed", type=int, metavar="S", default=secrets.randbelow(10**6), help="repeats a run")
    parser.add_argument("--first", type=int, metavar="N", default=1, help="number of the first run (1)")
    parser.add_argument("--list", action="store_true", help="show what there is")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
