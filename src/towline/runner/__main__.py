"""The program: reads one description of a job in JSON, runs it, and ends with the command's exit code.

PROGRAM DESCRIPTION     the path of the file; a directory of this process alone holds it, and goes with it
"""

import json
import os
import shutil
import signal
import sys
import traceback
from typing import Sequence

from towline.runner.modes import Description, run
from towline.runner.telling import say
from towline.stager.problems import Problem, of_system

FAILED = 1
"""Exit code when the command was not started."""


def main(argv: Sequence[str]) -> int:
    """Run the job that a file describes."""
    path = argv[0]
    scratch = os.path.dirname(os.path.abspath(path))

    def end_at_once(number: int, _frame: object) -> None:
        """Before the command runs; threads that wait for the network are not waited for."""
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end_at_once)
    signal.signal(signal.SIGINT, end_at_once)
    try:
        with open(path, encoding="utf-8") as file:
            job = Description(**json.load(file))
        return run(job, scratch, os.environ)
    except Problem as problem:
        say(_not_started(problem))
    except OSError as error:
        say(_not_started(of_system(error)))
    except ValueError as error:
        say("the command was not started: {}".format(error))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = "{}, line {}".format(os.path.basename(last.filename), last.lineno)
        say("a fault of Towline's runner ({}: {} in {}); please report it".format(type(error).__name__, error, place))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return FAILED


def _not_started(problem: Problem) -> str:
    """With the kind, which says to the diagnosis whether another attempt makes sense."""
    return "the command was not started ({}): {}".format(problem.kind, problem.text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
