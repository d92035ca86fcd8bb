"""The program: `ask` says what URIs mean now, `bring` brings one, `send` takes results away.

ask <URIS                           a line for each fact of each line of stdin, in the order of the lines
bring URI FOLDER VERSION PROGRESS TOOLS [MOST]
send RESULTS OUTPUTS [TASKS]                  see `towline.stager.send.destinations`

VERSION is `-` when it is not known, MOST the bytes that there may be (`-` for any number), TOOLS a list of programs
with commas, or `fsspec`. Keys are in variables only.
"""

import os
import signal
import sys
import threading
from typing import List, Mapping, Sequence

from towline.stager import ngc, others
from towline.stager.bring import Bringing, Meter, line_of, replace
from towline.stager.problems import Problem, of_system
from towline.stager.send import destinations, send_all
from towline.stager.source import Found
from towline.stager.sources import find, source_of

PATIENCE = 25
"""Seconds in which a source must have said what it has, when somebody waits for the answer."""


def facts_of(found: Found) -> List[str]:
    """What a note says of data."""
    return [
        "version={}".format(found.version),
        "kind={}".format(found.kind),
        "files={}".format(len(found.entries)),
        "size={}".format(found.bytes),
    ]


def ask(uris: Sequence[str], env: Mapping[str, str]) -> None:
    """Print what each URI means, all asked at the same time; one that does not answer in time is told as such."""
    answers = [["error=network it did not say in {} s what it has".format(PATIENCE)] for _ in uris]

    def one(number: int, uri: str) -> None:
        try:
            answers[number] = facts_of(source_of(uri, (), env).find())
        except Problem as problem:
            answers[number] = ["error={} {}".format(problem.kind, problem.text)]
        except Exception as error:  # whatever a source answers must not end the others
            answers[number] = ["error=other {}: {}".format(type(error).__name__, error)]

    threads = [threading.Thread(target=one, args=pair, daemon=True) for pair in enumerate(uris)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for number, lines in enumerate(list(answers)):
        for line in lines:
            print("{} {}".format(number, " ".join(line.split())))


def bring(
    uri: str, folder: str, version: str, progress: str, tools: Sequence[str], env: Mapping[str, str], most: str = "-"
) -> None:
    """Bring a URI's data into `folder`, and leave in its `facts` what is there now.

    Raises:
        Problem: it could not be brought.
    """
    source = source_of(uri, tools, env)
    print("[INFO] asking {}".format(uri), flush=True)
    found = source.take(os.path.join(folder, "data"))
    if found is None:
        found = find(source)
        if version not in ("-", found.version) and not isinstance(source, others.FileSystem):
            raise Problem("changed", "{} was changed since the job was submitted".format(uri))
        if most != "-" and (found.bytes > int(most) or any(each.size < 0 for each in found.entries)):
            raise Problem("size", "{} has {} bytes, and {} is the most here".format(uri, found.bytes, most))
        print("[INFO] bringing {} files, {} bytes".format(len(found.entries), found.bytes), flush=True)
        Bringing(source, folder, Meter(progress)).all(found)
    else:
        replace(os.path.join(folder, "manifest"), "".join(line_of(each) + "\n" for each in sorted(found.entries)))
    told = facts_of(found)
    if version != "-" and isinstance(source, (others.FileSystem, others.Tool, ngc.Model)):
        told[0] = "version={}".format(version)  # these see no checksums, by which the one who asked has named it
    with open(os.path.join(folder, "facts"), "w") as file:
        file.write("".join(line + "\n" for line in told))


def _end_at_once(number: int, _frame: object) -> None:
    """Threads that wait for the network are not waited for."""
    os._exit(128 + number)


def main(argv: Sequence[str]) -> int:
    """Do what the words ask for; 1 with an `[ERROR] KIND: TEXT` line when that fails."""
    signal.signal(signal.SIGTERM, _end_at_once)
    try:
        if argv[0] == "ask":
            ask(sys.stdin.read().splitlines(), os.environ)
            sys.stdout.flush()
            os._exit(0)  # a source that has not answered is not waited for
        elif argv[0] == "bring":
            bring(argv[1], argv[2], argv[3], argv[4], argv[5].split(","), os.environ, *argv[6:7])
        else:
            send_all(destinations(*argv[1:4]), os.environ)
    except Problem as problem:
        print("[ERROR] {}: {}".format(problem.kind, problem.text), flush=True)
        return 1
    except OSError as error:
        found = of_system(error)
        print("[ERROR] {}: {}".format(found.kind, found.text), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
