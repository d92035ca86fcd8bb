"""`SlurmSDK`: jobs on a Slurm cluster with the calls that scripts for TAO's SDK make.

from towline.tao.platforms.slurm import SlurmSDK

with SlurmSDK() as sdk:
    job = sdk.create_job("nvcr.io/nvidia/pytorch:24.07-py3", "torchrun …", gpu_count=8, num_nodes=2)
    print(sdk.get_job_status(job.id).status)
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from towline.engine.facade import Cluster
from towline.models.errors import NotFound
from towline.tao import remote_paths
from towline.tao.checkpoints import checkpoints_among
from towline.tao.job_store import JobStore, Row
from towline.tao.models import Job, JobStatus
from towline.tao.monitor import Hooks, JobMonitor, checked_hooks
from towline.tao.platforms.slurm.handler import SlurmHandler, job_of
from towline.tao.request import Mounts, Wish
from towline.tao.settings import tao_profile
from towline.tao.words import TERMINAL


class SlurmSDK:
    """Submits jobs to the cluster that TAO's variables name, and looks after them. See docs/tao.md.

    Making one costs no round trip. It is best used in a `with` block; without, what it holds is closed when the
    process ends. Jobs that an earlier process has submitted are watched on.

    Args:
        poll_interval: seconds between two looks at all jobs together.
        epoch_milestone_interval: the hook `on_epoch_milestone` is called for the epochs that this number divides.
        state_file: a file that lists the jobs that go on, with the jobs' rows beside it (`.db` in place of `.json`);
            they are kept below Towline's state directory when not given.

    Raises:
        CredentialError: no cluster is named; the error says which variables are missing.
        ConfigError: a variable or a setting is wrong.
    """

    def __init__(
        self,
        poll_interval: float = 30,
        epoch_milestone_interval: int = 10,
        state_file: str | os.PathLike[str] | None = None,
    ) -> None:
        profile = tao_profile(poll_interval)
        listed = Path(state_file) if state_file else None
        store = JobStore(None if listed is None else _rows_beside(listed))
        cluster = Cluster(profile)
        self._handler = SlurmHandler(cluster, store)
        self._store = store
        self._cluster = cluster
        self._monitor = JobMonitor(profile.poll_interval, epoch_milestone_interval, listed, store)
        self._background = Background(cluster, self._monitor)
        self._close = weakref.finalize(self, _close, cluster, store, self._background)
        for job in self._handler.unfinished():
            self._watch(job, {})

    def close(self) -> None:
        """Call the hooks that are due, and end what this object started; closing again does nothing."""
        self._close()

    def __enter__(self) -> SlurmSDK:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def calls(self) -> int:
        """Round trips to the cluster so far."""
        return self._cluster.calls

    # --- Jobs ---

    def create_job(
        self,
        image: str,
        command: str,
        gpu_count: int | None = 1,
        env_vars: Mapping[str, object] | None = None,
        hooks: Hooks | None = None,
        num_nodes: int | None = 1,
        partition: str | None = None,
        account: str | None = None,
        mounts: Mounts | str | None = None,
        inputs: Mapping[str, str] | None = None,
        outputs: Sequence[str] | Mapping[str, str] | None = None,
    ) -> Job:
        """Submit a job.

        Args:
            image: a `.sqsh` path on the cluster, or an image reference in any of TAO's spellings.
            command: shell text that runs in the container as it is, by bash where the image has it.
            gpu_count: GPUs of each node; from a node's number on whole nodes, as many as it takes. 0 is a job of CPUs.
            env_vars: the command's environment; None leaves a variable out. Values of names such as `WANDB_API_KEY`
                travel as secrets; NGC_KEY, HF_TOKEN and the keys of S3 are taken from this process's environment.
            hooks: `on_complete(job)`, `on_error(job)`, `on_epoch_milestone(job, epoch, epochs)`.
            num_nodes: nodes; the command runs once on each.
            partition: one or several partitions; those of SLURM_PARTITION when not given.
            account: that of SLURM_ACCOUNT, else your default one at the site, when not given.
            mounts: `SRC:DST` or `SRC:DST:ro`, or tables with `from_path` and `mount_path`, added to the default ones.
            inputs: path in the container → where its data comes from.
            outputs: directories in the container that are kept as the job's results; a mapping says where else they go.

        Raises:
            SpecError: a value cannot be right.
            PlanRefused, StagingFailed, SlurmRefused, Unreachable: the job was not started.
        """
        wish = Wish(
            image=image,
            command=command,
            gpu_count=gpu_count,
            num_nodes=num_nodes,
            env_vars=env_vars,
            partition=partition,
            account=account,
            mounts=mounts,
            inputs=inputs,
            outputs=outputs,
        )
        hooks = checked_hooks(hooks)  # before anything is sent: who gets an error submits again
        job = self._handler.create_job(wish)
        self._watch(job, hooks)
        return job

    def add_hooks(self, job_id: str, hooks: Hooks) -> None:
        """Watch a job that another process has submitted; what became of it already is told at once.

        Raises:
            NotFound: there is no such job.
        """
        hooks = checked_hooks(hooks)
        self._handler.find_anywhere(job_id)
        row = self._handler.row(job_id)
        if row is None:
            raise _unknown(job_id)
        self._watch(job_of(row), hooks)

    def _watch(self, job: Job, hooks: Hooks) -> None:
        self._monitor.watch(job, hooks, self._handler)
        self._background.start()

    def refresh(self) -> None:
        """Look at all jobs that have not ended, in one round trip; that is done in the background, too.

        Raises:
            TowlineError: the cluster could not be asked; what was known has not changed.
        """
        self._handler.look()
        self._monitor.wake()

    def get_job_status(self, job_id: str) -> JobStatus:
        """The status after a look at the cluster; `Unknown` for a job that is not known here.

        Raises:
            TowlineError: the cluster could not be asked; what was known has not changed.
        """
        job = self._handler.find_anywhere(job_id)
        if job is None:
            return JobStatus(job_id, *(self._handler.left_behind(job_id) or _NOBODYS))
        record = job.record
        if not record.state.ended:
            self._handler.look(job_id)
            record = (self._handler.find(job_id) or job).record
        word = self._handler.note(record)
        if word in TERMINAL:
            self._monitor.wake()
        return JobStatus(job_id, word, record.note)

    def get_job_logs(self, job_id: str, tail: int | None = None) -> str:
        """The log of the newest attempt, stdout before stderr; empty for a job that has none.

        Args:
            job_id: the job.
            tail: the last so many lines of each.
        """
        return self._handler.get_job_logs(job_id, tail)

    def cancel_job(self, job_id: str) -> bool:
        """Cancel a job for good; one that is over counts as cancelled. False for a job that is not known here.

        Raises:
            TowlineError: Slurm could not be told.
        """
        done = self._handler.cancel_job(job_id)
        self._monitor.wake()
        return done

    def get_failure_analysis(self, job_id: str) -> dict[str, Any] | None:
        """Why a job failed, or what its earlier attempts failed of; None when nothing did.

        `err_class` is `ERR_PROGRAM` or `ERR_INFRA`, `suggestion` what to do, `job_failure_by_node_event` what
        happened where.
        """
        return self._handler.get_failure_analysis(job_id)

    def get_job(self, job_id: str) -> Row | None:
        """What is known of a job, as plain values, without a look at the cluster; None for none."""
        return self._handler.row(job_id)

    def list_jobs(self, status: str | None = None) -> list[Row]:
        """The same of all jobs, newest first, of which that is the status."""
        return self._handler.rows(status)

    # --- Results ---

    def get_job_results_dir(self, job_id: str) -> str:
        """Where a job's results are, as `lustre://` path; empty for a job that is not known here."""
        row = self._handler.row(job_id)
        return row["results_dir"] if row else ""

    def get_checkpoints(self, job_id: str) -> list[str]:
        """The checkpoints among a job's results as paths on the cluster, by epoch and step."""
        job = self._handler.find_anywhere(job_id)
        if job is None:
            return []
        found = checkpoints_among(file.path for file in job.results() if file.readable)
        return [f"{job.record.directory}/results/{path}" for path in found]

    def delete_job_artifacts(self, job_id: str) -> bool:
        """Remove the results of a job that has ended; False for one that has not, or that is not known here."""
        return self._handler.delete_results(job_id)

    # --- Data ---

    def check_path(self, remote_path: str) -> bool:
        """Whether a path is there: of the cluster (`/path`, `lustre:///path`), or of other storage by fsspec.

        Raises:
            TowlineError: it could not be looked at, which says nothing about the path.
        """
        if remote_paths.is_elsewhere(remote_path):
            return remote_paths.exists(remote_path)
        try:
            self._cluster.list_path(remote_path, names=False)
        except NotFound:
            return False
        return True

    def list_path(self, remote_path: str) -> list[str]:
        """The names of what a directory holds; see `check_path`.

        Raises:
            NotFound: it is not there.
            TowlineError: it could not be looked at.
        """
        if remote_paths.is_elsewhere(remote_path):
            return remote_paths.names_at(remote_path)
        return list(self._cluster.list_path(remote_path).names)


_NOBODYS = ("Unknown", "no such job is known here")


def _rows_beside(state_file: Path) -> Path:
    return state_file.with_suffix(".db") if state_file.suffix == ".json" else Path(f"{state_file}.db")


def _unknown(job_id: str) -> NotFound:
    return NotFound(f"no job {job_id!r} is known here", fix="See the known jobs with `list_jobs()`.")


class Background:
    """What goes on while an SDK is open: the looks at its jobs, and the hooks.

    Args:
        cluster: the cluster that is looked at.
        monitor: calls the hooks.
    """

    def __init__(self, cluster: Cluster, monitor: JobMonitor) -> None:
        self._cluster = cluster
        self._monitor = monitor
        self._leave: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin; once is enough."""
        if self._leave is None:
            self._leave = self._cluster.attend(lambda _: self._monitor.wake())
            self._monitor.start()

    def stop(self) -> None:
        """Call what is due, and end."""
        if self._leave:
            self._leave()
        self._monitor.stop()


def _close(cluster: Cluster, store: JobStore, background: Background) -> None:
    try:
        background.stop()
    finally:
        try:
            cluster.close()
        finally:
            store.close()
