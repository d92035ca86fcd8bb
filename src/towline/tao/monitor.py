"""`JobMonitor`: looks at jobs in the background and calls hooks.

A hook is called for what became of the job, not for what this thread happened to see: an end that another call noticed
first counts as well, milestones that were passed between two looks are told one by one, and what is known when the
monitor stops is told before it stops.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from towline.models.errors import SpecError, TowlineError
from towline.tao.files import write_whole
from towline.tao.job_store import JobStore
from towline.tao.models import Job, now
from towline.tao.words import TERMINAL

logger = logging.getLogger(__name__)

Hooks = Mapping[str, Callable[..., object]]
"""`on_complete` and `on_error` get the job, `on_epoch_milestone` the job, the epoch, and the epochs in all (0 when not
known)."""

_NAMES = ("on_complete", "on_error", "on_epoch_milestone")
_OF_ENDS = {"Complete": "on_complete", "Error": "on_error"}
_EPOCH = re.compile(r"\bepoch[\s:=\[]+(\d+)(?:\s*/\s*(\d+))?", re.IGNORECASE)
_LINES = 20
"""Last lines of the log in which an epoch is looked for."""


def checked_hooks(hooks: Hooks | None) -> Hooks:
    """The hooks that can be called; None stands for none, also for one of them.

    Raises:
        SpecError: something is no hook, or has a name by which none is called.
    """
    if hooks is None:
        return {}
    if not isinstance(hooks, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SpecError(f"hooks must be a table, not {hooks!r}"[:300], fix=f"There are {', '.join(_NAMES)}.")
    given = {name: hook for name, hook in hooks.items() if hook is not None}  # pyright: ignore[reportUnnecessaryComparison]
    for name, hook in given.items():
        if name not in _NAMES or not callable(hook):
            raise SpecError(
                f"{name!r} is no hook that could be called", fix=f"There are {', '.join(_NAMES)}: functions."
            )
    return given


class Handler(Protocol):
    """What a monitor asks about jobs.

    One that has `keeps_up` learns of changes by itself and wakes the monitor, so that asking it costs nothing;
    `get_job_progress(job_id)` is used where it is.
    """

    def get_tao_job_status(self, job_id: str) -> str | None: ...  # noqa: D102

    def normalize_status(self, raw_status: str | None) -> str: ...  # noqa: D102

    def get_job_logs(self, job_id: str, tail_lines: int | None = None) -> str | None: ...  # noqa: D102


@dataclass
class _Watched:
    job: Job
    hooks: Hooks
    handler: Handler
    last_epoch: int = 0
    told: set[str] = field(default_factory=set[str])


class JobMonitor:
    """Looks at the watched jobs every so often, in a thread of its own that begins with `start`.

    Args:
        poll_interval: seconds between two looks.
        epoch_milestone_interval: `on_epoch_milestone` is called for the epochs that this number divides.
        state_file: a JSON file that lists the jobs that go on; none when not given.
        store: where it is noted what was called, so that another process does not call it again.
    """

    def __init__(
        self,
        poll_interval: float = 30,
        epoch_milestone_interval: int = 10,
        state_file: str | os.PathLike[str] | None = None,
        store: JobStore | None = None,
    ) -> None:
        self._interval = poll_interval
        self._every = max(1, epoch_milestone_interval)
        self._state_file = Path(state_file) if state_file is not None else None
        self._store = store
        self._watched: dict[str, _Watched] = {}
        self._lock = threading.Lock()
        self._checking = threading.RLock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, job: Job, hooks: Hooks, handler: Handler) -> None:
        """Watch a job; hooks that were called for it already, by an earlier process, are not called again."""
        last = 0
        told: set[str] = set()
        if self._store:
            fields = {name: value for name, value in job.to_dict().items() if name != "job_id"}
            self._store.create_job_if_absent(job.id, **fields)
            row = self._store.get_job(job.id) or {}
            last = int(row.get("last_epoch") or 0)
            told = {name for name in _OF_ENDS.values() if self._store.was_called(job.id, name)}
        with self._lock:
            self._watched[job.id] = _Watched(job, dict(hooks), handler, last, told)
        self._write_state()
        self._wake.set()

    def unwatch(self, job_id: str) -> None:
        """Watch a job no more."""
        with self._lock:
            self._watched.pop(job_id, None)

    def start(self) -> None:
        """Begin to look, the first time after the interval or when there is something new; once is enough."""
        if self._thread and self._thread.is_alive():
            return
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="towline-tao", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the hooks for what is known by now."""
        self._stop.set()
        self._wake.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None
        self.check(ask=False)

    def wake(self) -> None:
        """Somebody has found out something: see now whether there are hooks to call."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            news = self._wake.wait(self._interval)
            self._wake.clear()
            if not self._stop.is_set():
                self.check(ask=not news)

    def check(self, *, ask: bool = True) -> None:
        """One look at all watched jobs, and the hooks that follow from it.

        Args:
            ask: also those that must be asked for; without it only what is known already counts.
        """
        with self._checking:
            with self._lock:
                watched = dict(self._watched)
            for job_id, each in watched.items():
                try:
                    self._look(job_id, each, ask=ask)
                except TowlineError as error:  # nothing was learnt, and nothing changes
                    logger.warning("job %s could not be looked at: %s", job_id, error)
                except Exception:
                    logger.exception("job %s could not be looked at", job_id)
            self._write_state()

    def _look(self, job_id: str, watched: _Watched, *, ask: bool) -> None:
        if not ask and not hasattr(watched.handler, "keeps_up"):
            return
        status = watched.handler.normalize_status(watched.handler.get_tao_job_status(job_id))
        watched.job.status = status
        if self._store and not hasattr(watched.handler, "keeps_up"):
            self._store.update_job_status(job_id, status)
        if "on_epoch_milestone" in watched.hooks and (ask or status in TERMINAL):
            self._tell_milestones(job_id, watched)
        if status in TERMINAL:
            self._call(watched, _OF_ENDS.get(status, ""), watched.job)
            self.unwatch(job_id)

    def _tell_milestones(self, job_id: str, watched: _Watched) -> None:
        found = self._progress(job_id, watched.handler)
        if found is None:
            return
        epoch, epochs = found
        for milestone in range((watched.last_epoch // self._every + 1) * self._every, epoch + 1, self._every):
            self._call(watched, "on_epoch_milestone", watched.job, milestone, epochs)
            watched.last_epoch = milestone
            if self._store:
                self._store.note_epoch(job_id, milestone)

    def _progress(self, job_id: str, handler: Handler) -> tuple[int, int] | None:
        """The epoch and how many there are: from what the job reports, else from its log."""
        if (known := getattr(handler, "get_job_progress", None)) and (found := known(job_id)):
            return found
        try:
            logs = handler.get_job_logs(job_id, tail_lines=_LINES)
        except TowlineError:
            return None
        found = _EPOCH.findall(logs or "")
        return (int(found[-1][0]), int(found[-1][1] or 0)) if found else None

    def _call(self, watched: _Watched, name: str, *arguments: Any) -> None:
        """Call a hook; that of an end is called once, and noted afterwards: nothing is lost when the process dies."""
        hook, ends = watched.hooks.get(name), name in _OF_ENDS.values()
        if hook is None or name in watched.told:
            return
        try:
            hook(*arguments)
        except Exception:
            logger.exception("the hook %s of job %s failed", name, watched.job.id)
        if ends:
            watched.told.add(name)
            if self._store:
                self._store.call_hook(watched.job.id, name)

    def _write_state(self) -> None:
        if self._state_file is None:
            return
        with self._lock:
            jobs = [
                {**each.job.to_dict(), "last_epoch": each.last_epoch, "updated_at": now()}
                for each in self._watched.values()
            ]
        with contextlib.suppress(OSError):
            write_whole(self._state_file, json.dumps({"active_jobs": jobs}, indent=2))
