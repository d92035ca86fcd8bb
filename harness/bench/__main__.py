"""`./bench`: lists and runs the benchmarks."""

from __future__ import annotations

import argparse
import inspect
import sys

from harness.bench import cases
from harness.bench.registry import BENCHMARKS, Benchmark
from harness.cases import load


def main(arguments: list[str]) -> int:
    """Run the benchmarks named, or all; 0 when each keeps its limit, 1 when one does not."""
    load(cases)
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(sorted(BENCHMARKS))}")
    chosen = [BENCHMARKS[name] for name in options.names or sorted(BENCHMARKS)]
    if options.list:
        for benchmark in chosen:
            print(_described(benchmark))
        return 0
    kept = [_run(benchmark) for benchmark in chosen]
    return 0 if all(kept) else 1


def _run(benchmark: Benchmark) -> bool:
    line, ok = benchmark.line()
    print(line, flush=True)
    return ok


def _described(benchmark: Benchmark) -> str:
    summary = (inspect.getdoc(benchmark.measure) or "").partition("\n")[0]
    return f"{benchmark.name:24} at most {benchmark.limit:g} {benchmark.unit:6} {summary}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="./bench", description="Measures what must stay fast.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="all when none")
    parser.add_argument("--list", action="store_true", help="show the benchmarks instead of running them")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
