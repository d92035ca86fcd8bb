"""Bringing the lab up and down, asking how it is, and running commands on it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.lab import controller, folder, guard, kernel, namespaces, packages, runtime, slurmconf
from towline.lab.errors import LabError
from towline.lab.faults import record, switch
from towline.lab.layout import CTL, Layout, find_host
from towline.lab.parts import Part, Report, all_parts, unheard
from towline.lab.runtime import STAND_INS, RuntimeChoice
from towline.lab.store import daemon as store


@dataclass(frozen=True)
class PartHealth:
    """How one part is."""

    name: str
    problem: str
    """Empty when it is up."""


@dataclass(frozen=True)
class LabStatus:
    """How the lab is."""

    parts: tuple[PartHealth, ...]
    nodes: dict[str, str]
    """Slurm's word for each node's state; empty when the controller does not answer."""
    notes: tuple[str, ...]
    """Where this machine makes the lab less real than it could be."""
    runtime: str
    """The container runtime in use."""
    faults: tuple[str, ...] = ()
    """The faults that are on, each with its arguments."""

    @property
    def is_up(self) -> bool:
        """Whether every part is up."""
        return not any(part.problem for part in self.parts)

    def as_dict(self) -> dict[str, object]:
        """The status as `--json` prints it."""
        return {
            "up": self.is_up,
            "parts": [{"name": part.name, "up": not part.problem, "problem": part.problem} for part in self.parts],
            "nodes": self.nodes,
            "runtime": self.runtime,
            "faults": list(self.faults),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Lab:
    """The lab on this machine; needs root."""

    paths: Layout

    @classmethod
    def default(cls) -> Lab:
        """The lab that the environment asks for. Raises `LabError` for an impossible setting."""
        return cls(Layout.from_environment())

    def up(
        self, report: Report = unheard, *, install: bool = False, container_runtime: RuntimeChoice = STAND_INS
    ) -> bool:
        """Bring up what is not up, and turn faults off; False when everything was up and no fault on.

        The container runtime is exchanged, too, when the lab has another one; the steps that run keep theirs.

        Raises:
            LabError: packages are missing, the machine has a Slurm of its own, or a part did not start.
        """
        _require_root()
        guard.require_free_machine(self.paths)
        if install:
            packages.install(report)
        packages.require()
        container_runtime.require()
        with self._locked(report):
            runtime.choose(self.paths, container_runtime)
            return self._bring_all_up(report)

    def down(self, report: Report = unheard, *, purge: bool = False) -> None:
        """Take away everything but the folder, and with `purge` the folder as well.

        Raises:
            LabError: something stayed; everything else is gone.
        """
        _require_root()
        if not self.paths.root.exists() and not self._holders():
            return
        with self._locked(report):
            switch.turn_all_off(self.paths)  # what cannot be undone stays on record for the next `up`
            failures = [failure for part in reversed(all_parts()) if (failure := self._take_away(part, report))]
            if failures:
                raise LabError("Some of the lab could not be taken away.", why="\n".join(failures))
            if purge:
                folder.purge(self.paths)

    def reset(self, report: Report = unheard) -> None:
        """Turn every fault off, mend what is down and cancel every job.

        Raises:
            LabError: a fault could not be undone, or a part did not start.
        """
        _require_root()
        with self._locked(report):
            self._bring_all_up(report)
            controller.cancel_all(self.paths)
            self._bring_all_up(report)

    def fault_on(self, name: str, *words: str) -> str:
        """Turn a fault on; gives it with its arguments, as `status` names it.

        Raises:
            LabError: no such fault, wrong arguments, the lab is not up, or it could not be turned on; then it is off.
        """
        _require_root()
        namespaces.require(self.paths, CTL)
        with self._locked(unheard):
            return str(switch.turn_on(self.paths, name, words))

    def fault_off(self, name: str, *words: str) -> list[str]:
        """Turn a fault off: for the host named, or wherever it is on. Gives what was on.

        Raises:
            LabError: no such fault, or it could not be undone; then it is still on.
        """
        _require_root()
        with self._locked(unheard):
            return [str(one) for one in switch.turn_off(self.paths, name, words)]

    def all_faults_off(self) -> list[str]:
        """Turn every fault off; gives what was on.

        Raises:
            LabError: some could not be undone; these are still on.
        """
        _require_root()
        with self._locked(unheard):
            were_on = list(self.faults())
            if failures := switch.turn_all_off(self.paths):
                raise LabError("Some faults could not be undone.", why="\n".join(failures), fix="`towline lab reset`")
        return were_on

    def faults(self) -> tuple[str, ...]:
        """The faults that are on, each with its arguments."""
        return tuple(str(one) for one in record.active(self.paths))

    def status(self) -> LabStatus:
        """How each part is, asked now."""
        _require_root()
        health = tuple(PartHealth(part.name, part.check(self.paths)) for part in all_parts())
        problems = {part.name: part.problem for part in health}
        nodes = {} if problems["controller"] else controller.node_states(self.paths)
        return LabStatus(health, nodes, self.notes(), runtime.in_use(self.paths), self.faults())

    def notes(self) -> tuple[str, ...]:
        """Where this machine makes the lab less real than it could be."""
        groups = () if kernel.has_cgroup_v1() else (slurmconf.NO_CGROUPS,)
        return groups if store.has_moto() else (*groups, store.NO_MOTO)

    def command(self, host: str, argv: Sequence[str], *, user: str = "root") -> list[str]:
        """The command line that runs `argv` on a host of the lab; raises `LabError` when it is not up."""
        _require_root()
        return namespaces.command(self.paths, find_host(host), argv, user=user)

    def logs(self, name: str = "") -> list[Path]:
        """The log files of a part, the one of that name, or all of them.

        Raises:
            LabError: nothing of that name has a log.
        """
        patterns = next((part.logs for part in all_parts() if part.name == name), (f"{name or '*'}.log",))
        files = sorted(path for pattern in patterns for path in self.paths.log.glob(pattern))
        if not files:
            names = [part.name for part in all_parts() if part.logs]
            names += sorted(path.stem for path in self.paths.log.glob("*.log"))
            raise LabError(f"Nothing called {name!r} has a log.", fix=f"There are: {', '.join(names)}.")
        return files

    def run_on(
        self,
        host: str,
        argv: Sequence[str],
        *,
        user: str = "root",
        stdin: str | None = None,
        check: bool = False,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host of the lab as one of its users and wait at most `timeout` seconds for its end.

        Raises:
            LabError: no such host, the host is down, out of time; with `check` also when the command failed.
        """
        return namespaces.run(self.paths, find_host(host), argv, user=user, stdin=stdin, check=check, timeout=timeout)

    def _bring_all_up(self, report: Report) -> bool:
        """Faults go first, as far as they can be undone on what is up, and the rest once all of it is."""
        had_faults = bool(self.faults())
        switch.turn_all_off(self.paths)
        started = [part.name for part in all_parts(report) if self._bring_up(part, report)]
        if failures := switch.turn_all_off(self.paths):
            raise LabError("Some faults could not be undone.", why="\n".join(failures))
        return bool(started) or had_faults

    def _bring_up(self, part: Part, report: Report) -> bool:
        begin = time.monotonic()
        if not part.check(self.paths):
            return False
        try:
            part.start(self.paths)
        except LabError as error:
            what = f"The lab's part `{part.name}` did not start. {error.what}"
            raise LabError(what, why=error.why, fix=error.fix) from error
        except OSError as error:
            raise LabError(f"The lab's part `{part.name}` did not start.", why=str(error)) from error
        if problem := part.check(self.paths):
            raise LabError(f"The lab's part `{part.name}` did not start: {problem}.")
        report(f"{part.name} up ({time.monotonic() - begin:.1f} s)")
        return True

    def _take_away(self, part: Part, report: Report) -> str:
        try:
            part.stop(self.paths)
        except (LabError, OSError) as error:
            return f"{part.name}: {error}"
        report(f"{part.name} gone")
        return ""

    def _holders(self) -> list[int]:
        return [pid for pid, root in namespaces.all_holders().items() if root == str(self.paths.root)]

    @contextlib.contextmanager
    def _locked(self, report: Report) -> Generator[None]:
        """One `up` or `down` at a time; a folder removed while waiting is made again."""
        before = os.umask(0o022)  # hosts' users read much of what is made here; what is secret has a mode of its own
        try:
            with self._lock_file(report):
                yield
        finally:
            os.umask(before)

    @contextlib.contextmanager
    def _lock_file(self, report: Report) -> Generator[None]:
        while True:
            self.paths.root.mkdir(mode=0o755, parents=True, exist_ok=True)
            with (self.paths.root / "lock").open("w") as file:
                if not _taken_at_once(file.fileno()):
                    report("waiting for another `towline lab` to finish")
                    fcntl.flock(file, fcntl.LOCK_EX)
                if _is_same_file(file.fileno(), self.paths.root / "lock"):
                    yield
                    return


def _taken_at_once(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_file(handle: int, path: os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("The lab needs root: it makes namespaces, mounts and network devices.", fix="Use sudo.")
