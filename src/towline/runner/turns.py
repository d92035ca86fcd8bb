"""One at a time, of all processes on all nodes that see a directory, and no standstill when the one dies.

Whoever does the work has the newest `turn-<n>`, a file that only one can make, and rewrites it every few seconds. No
clocks are compared: who waits looks whether the file changes, by its own clock, and takes the next number when it has
not for a minute. The process of a dead turn may be alive after all, on a node that was cut off: so its working
directory `work-<n>` is renamed, and what it writes by name finds no place any more. Locks of the operating system would
not do, because many shared file systems keep them on each node alone, or refuse them.
"""

import json
import os
import shutil
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from towline.stager.bring import replace
from towline.stager.problems import Problem

BEAT = 5.0
"""Seconds between two signs of life."""
STALE = 60.0
"""Seconds without one after which a turn is taken over; more than the minute's half that NFS may show old files."""
_SHORT, _LONG = 0.1, 2.0
"""Seconds between two looks of one who waits: short at first, then longer."""


class Who(NamedTuple):
    """A process, as others can tell whether it still lives.

    Attributes:
        host: the node.
        space: its kernel's boot and namespace of process ids; empty when not known.
        pid: process id.
        born: when it began, in the kernel's ticks; empty when not known.
        job: the job that it belongs to, the same for all attempts.
        run: the attempt, of which several steps may run at once; empty outside Slurm.
        step: the step of it.
    """

    host: str
    space: str
    pid: int
    born: str
    job: str
    run: str
    step: str

    @classmethod
    def me(cls, env: Mapping[str, str]) -> "Who":
        """This process."""
        slurm, pid = env.get("SLURM_JOB_ID", ""), os.getpid()
        run = "{}.{}".format(slurm, env.get("SLURM_RESTART_COUNT") or "0") if slurm else ""
        job, step = env.get("TAO_JOB_ID", ""), env.get("SLURM_STEP_ID", "")
        return cls(os.uname().nodename, _space(), pid, _born(pid), job, run, step)

    def is_seen_dead_by(self, other: "Who") -> bool:
        """Whether that other process, on the same kernel, sees that this one is no more."""
        if not self.space or (self.host, self.space) != (other.host, other.space):
            return False
        now = _born(self.pid)
        return now != self.born if now else not _exists(self.pid)  # those of others may be hidden (proc(5), hidepid)

    def is_in_step_of(self, other: "Who") -> bool:
        """Whether it is of the same step of the same attempt, and so has what the other one has."""
        return bool(self.run) and (self.run, self.step) == (other.run, other.step)

    def is_earlier_start_of(self, other: "Who") -> bool:
        """Whether it is of another attempt of the same job."""
        return bool(self.job and self.run and other.run) and self.job == other.job and self.run != other.run


def _space() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip() + " " + os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _born(pid: int) -> str:
    try:
        with open("/proc/{}/stat".format(pid)) as file:
            return file.read().rpartition(")")[2].split()[19]  # proc(5): field 22, starttime
    except (OSError, IndexError):
        return ""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Turn(NamedTuple):
    """What `turn-<n>` says."""

    number: int
    text: str

    @property
    def facts(self) -> Dict[str, Any]:
        """Its table; empty while it is being written."""
        try:
            return dict(json.loads(self.text))
        except (ValueError, TypeError):
            return {}

    @property
    def who(self) -> Optional[Who]:
        """Whose it is."""
        try:
            return Who(*self.facts["who"])
        except (KeyError, TypeError):
            return None


class Queue:
    """The turns in one directory.

    Args:
        folder: where they are.
        who: this process.
        say: tells the user a line.
    """

    def __init__(self, folder: str, who: Who, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._who = who
        self._say = say

    def make_once(self, what: str, is_there: Callable[[], bool], make: Callable[[str], None]) -> None:
        """Have something made by one process, or wait for the one that makes it.

        Args:
            what: its name, for people.
            is_there: whether it is there, whole.
            make: makes it, with a working directory that earlier turns may have left something in.

        Raises:
            Problem: it could not be made, by this process or by another one of the same attempt.
            OSError: the directory cannot be written.
        """
        watch = Watch(self._newest())
        while not is_there():
            turn = self._newest()
            if not self._is_over(turn, watch):
                watch.tell(turn, what, self._say)
                watch.wait()
            elif self._claim(turn.number + 1) and self._made(turn.number + 1, is_there, make):
                return

    def _newest(self) -> Turn:
        numbers = _numbers(self._folder, "turn-")
        if not numbers:
            return Turn(0, "")
        try:
            with open(self._path("turn", numbers[-1]), encoding="utf-8") as file:
                return Turn(numbers[-1], file.read())
        except OSError:  # its owner has ended well, and removes it
            return Turn(numbers[-1], "")

    def _path(self, kind: str, number: int) -> str:
        return os.path.join(self._folder, "{}-{}".format(kind, number))

    def _is_over(self, turn: Turn, watch: "Watch") -> bool:
        """Whether the next turn may begin.

        Raises:
            Problem: it ended so that this one would end alike.
        """
        facts, who = turn.facts, turn.who
        if turn.number == 0 or watch.is_stale(turn):
            return True
        if who is None:
            return False
        if "failed" in facts:
            if who.is_in_step_of(self._who):
                kind, text = facts["failed"]
                raise Problem(str(kind), "{} (told by {}, which tried)".format(text, who.host))
            return True
        earlier = turn.number == watch.first and who.is_earlier_start_of(self._who)
        return earlier or who.is_seen_dead_by(self._who)

    def _claim(self, number: int) -> bool:
        os.makedirs(self._folder, exist_ok=True)
        try:
            handle = os.open(self._path("turn", number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps({"who": self._who, "beat": 0}))
        return True

    def _made(self, number: int, is_there: Callable[[], bool], make: Callable[[str], None]) -> bool:
        """Make it; false when somebody has taken over meanwhile."""
        beat = Beat(self._path("turn", number), self._who)
        try:
            if not is_there():
                make(self._work(number))
        except (Problem, OSError) as error:
            beat.stop()
            if self._newest().number != number:
                return False
            told = [error.kind, error.text] if isinstance(error, Problem) else ["other", str(error)]
            self._leave(number, self._who, told)
            raise
        except BaseException:
            beat.stop()
            self._leave(number, self._who._replace(run=""), ["other", ""])  # that is no answer for others
            raise
        beat.stop()
        self._clear(number)
        return True

    def _leave(self, number: int, who: Who, told: List[str]) -> None:
        """Say that this turn has failed."""
        replace(self._path("turn", number), json.dumps({"who": who, "failed": told}))

    def _work(self, number: int) -> str:
        """This turn's working directory, with what is there of the newest earlier one."""
        path, found = self._path("work", number), _numbers(self._folder, "work-")
        for older in reversed(found):
            try:
                os.rename(self._path("work", older), path)
                break
            except OSError:
                continue
        os.makedirs(path, exist_ok=True)
        return path

    def _clear(self, number: int) -> None:
        """Remove what all turns up to this one have left."""
        for kind, remove in (("work", _remove_tree), ("turn", _remove_file)):
            for each in _numbers(self._folder, kind + "-"):
                if each <= number:
                    remove(self._path(kind, each))


class Watch:
    """What one that waits has seen of turns, by its own clock."""

    def __init__(self, first: Turn) -> None:
        self.first = first.number
        self._last = first
        self._since = time.monotonic()
        self._pause = _SHORT
        self._told = 0

    def is_stale(self, turn: Turn) -> bool:
        """Whether the turn has not changed for long."""
        if turn != self._last:
            self._last, self._since = turn, time.monotonic()
        return time.monotonic() - self._since > STALE

    def wait(self) -> None:
        """Let some time pass; more the longer it lasts, because thousands may wait."""
        time.sleep(self._pause)
        self._pause = min(_LONG, self._pause * 1.5)

    def tell(self, turn: Turn, what: str, say: Callable[[str], None]) -> None:
        """Say once for each turn who is waited for."""
        if turn.who and turn.number != self._told:
            self._told = turn.number
            say("waiting for {}, where {} is brought".format(turn.who.host, what))


class Beat:
    """Signs of life of one turn, until it is stopped."""

    def __init__(self, path: str, who: Who) -> None:
        self._path = path
        self._who = who
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        count = 0
        while not self._end.wait(BEAT):
            count += 1
            replace(self._path, json.dumps({"who": self._who, "beat": count}))

    def stop(self) -> None:
        """No more of them."""
        self._end.set()
        self._thread.join()


def _numbers(folder: str, beginning: str) -> List[int]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    rests = [name[len(beginning) :] for name in names if name.startswith(beginning)]
    return sorted(int(rest) for rest in rests if rest.isdigit())


def _remove_tree(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
