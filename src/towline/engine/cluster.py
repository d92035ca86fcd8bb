"""`AsyncCluster`: the engine's door for everything above. The sync facade wraps it and `AsyncJob`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from towline.config.files import resolve
from towline.config.paths import state_dir
from towline.config.profile import ClusterProfile
from towline.engine.addressing import find_job
from towline.engine.adopting import Adopted, adopt, adopt_all
from towline.engine.data.delivering import deliver_later, output_checks
from towline.engine.data.preparing import stage_plan
from towline.engine.data.staging import fetch_files, staging_jobs
from towline.engine.events import Held, Progress, PullReport
from towline.engine.healing.bad_nodes import avoiding, bad_nodes
from towline.engine.images.importing import import_jobs, import_told
from towline.engine.images.preparing import prepare
from towline.engine.images.sharing import check_shared
from towline.engine.job import AsyncJob
from towline.engine.listing import Listing, list_path
from towline.engine.mapping import Work, map_spec
from towline.engine.planning.datasets import place_datasets
from towline.engine.planning.dependencies import settle
from towline.engine.planning.looking import looked_at
from towline.engine.planning.plans import check_plan, make_plan
from towline.engine.preparing import waiting_for
from towline.engine.reaching import open_remote
from towline.engine.session import Session
from towline.engine.staging import cleaning, pulling, pushing
from towline.engine.staging import code as staging
from towline.engine.staging.cleaning import Removed
from towline.engine.staging.pushing import Pushed
from towline.engine.store import Store
from towline.engine.submitting import submission
from towline.engine.submitting.secrets import known_secrets, take_secrets
from towline.engine.watching import observation, reading, streams
from towline.engine.watching.poller import Poller
from towline.engine.watching.streams import Snapshot
from towline.models.code import Code
from towline.models.errors import SlurmRefused, SlurmUnavailable, TowlineError
from towline.models.event import JobEvent
from towline.models.ids import new_job_id
from towline.models.job import JobRecord
from towline.models.plan import Plan
from towline.models.secrets import Secrets
from towline.models.spec import JobSpec
from towline.remote.base import Remote
from towline.storage.usage import Item, Wish


class AsyncCluster:
    """One cluster: submit jobs to it and find those that were submitted.

    Args:
        profile: the cluster's settings.
        remote: the way to its login hosts; made from the profile when not given.
        store: the local store; the one in the state directory when not given.

    Attributes:
        notes: what the user should know of how the profile was found.

    Use it as an async context manager, or call `close`.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, profile: ClusterProfile, *, remote: Remote | None = None, store: Store | None = None) -> None:
        self._session = Session(profile, remote or open_remote(profile), store or Store(state_dir()))
        self.notes = self._session.store.notes
        if profile.notify:
            from towline.engine.notifying.waking import watched_by_people

            self.notes += watched_by_people(self._session)

    @classmethod
    def open(cls, name: str | None = None) -> AsyncCluster:
        """The cluster with that profile name, or the default one.

        Raises:
            ConfigError: there is no such profile, or a setting in it is wrong.
        """
        found = resolve(name)
        cluster = cls(found.profile)
        cluster.notes += found.notes
        return cluster

    @property
    def profile(self) -> ClusterProfile:
        """The cluster's settings."""
        return self._session.profile

    @property
    def calls(self) -> int:
        """Round trips to the cluster so far."""
        return self._session.remote.calls

    async def plan(
        self, spec: JobSpec, *, look: bool = False, job_id: str = "", secrets: Secrets | None = None
    ) -> Plan:
        """What a submission would do, with every check's verdict; nothing on the cluster is changed.

        Facts about the site come from the store when they are fresh; a check that fails on kept facts is
        made again on new ones.

        Args:
            spec: the job.
            look: ask the cluster whether the job's paths are there, what sbatch says of the script and when the
                job would start, which takes a round trip; a submission looks at paths and space anyway as its
                first step.
            job_id: the id that the job will have; a new one when not given.
            secrets: as `submit` takes them, as far as they are known: with them sources of data are asked what they
                have. Nothing of them is in the plan.
        """
        job_id = job_id or new_job_id()
        spec, placed = place_datasets(spec)
        settled = await settle(self._session, spec)
        code = await staging.look(self._session, spec.code) if spec.code else None
        facts, fresh = await observation.site_facts(self._session)
        avoided = avoiding(spec, self.profile.partition, bad_nodes(self._session), facts)
        spec = avoided.spec
        prepared = await prepare(self._session, spec, facts)
        known = known_secrets(spec, secrets)
        parts = placed.parts if placed else ()
        staged = await stage_plan(self._session, spec, facts, known, f"{self.profile.root}/jobs/{job_id}", parts)
        staged = replace(staged, files=fetch_files(spec, self.profile, staged.inputs))
        staged = staged.with_checks(output_checks(spec, self.profile, facts))
        plan = make_plan(spec, self.profile, facts, job_id, settled, code, prepared, staged, placed)
        if plan.failures and not fresh:
            facts, _ = await observation.site_facts(self._session, fresh=True)
            plan = make_plan(spec, self.profile, facts, job_id, settled, code, prepared, staged, placed)
        plan = replace(plan, notes=(*plan.notes, *avoided.notes))
        return await looked_at(self._session, plan) if look else plan

    async def submit(
        self,
        spec: JobSpec,
        plan: Plan | None = None,
        *,
        secrets: Secrets | None = None,
        patience: float | None = submission.PATIENCE,
        told: Callable[[Held], None] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> AsyncJob:
        """Stage and submit a job.

        Args:
            spec: the job.
            plan: what `plan` made of it; made now when not given.
            secrets: where the values of the spec's secrets come from: a mapping (`os.environ` is one) or a
                function of the name. Only what the spec names is asked for.
            patience: seconds to hold the job and try again while Slurm says "later" (the queue is full, the
                controller is away) or it is not known whether it has the job; None for ever, 0 for one try.
            told: called before each pause.
            progress: told how far the spec's code is on its way, if it has to be sent.

        Raises:
            SpecError: a secret has no value.
            PlanRefused: a check fails; nothing was sent.
            StagingFailed, SlurmRefused, Unreachable: the job was not started.
            OutcomeUnknown: the answer was lost; the job is in the store and is looked up by the next poll.
        """
        values = take_secrets(spec, secrets)
        plan = plan or await self.plan(spec, secrets=values)
        if plan.failures and plan.estimate is None:
            with contextlib.suppress(TowlineError):  # so that what is wrong with paths is told, too
                plan = await looked_at(self._session, plan)
        check_plan(plan)
        if plan.code:
            await self.send_code(plan.code, progress=progress)
        await check_shared(self._session, plan)
        imports = await import_jobs(self._session, plan, import_told(self._session, plan, told))
        plan = waiting_for(plan, [*imports, *await staging_jobs(self._session, plan, values)])
        try:
            record = await submission.submit(self._session, plan, values, patience=patience, told=told)
        except SlurmRefused as error:
            if not isinstance(error, SlurmUnavailable):  # the checks passed, so what is known of the site is old
                self._session.store.forget_facts(self.profile.name)
            raise
        await deliver_later(self._session, record, plan.spec, values)
        return AsyncJob(self._session, record)

    async def send_code(self, code: Code, *, progress: Callable[[Progress], None] | None = None) -> None:
        """See that a plan's code is on the cluster; `submit` does it, too.

        Args:
            code: `Plan.code`.
            progress: told what was handed to the connection; not at all when the code is there.

        Raises:
            StagingFailed: it could not be written there.
        """
        await staging.bring(self._session, code, progress)

    async def push(
        self, local: Path, remote: str = "", *, progress: Callable[[Progress], None] | None = None
    ) -> Pushed:
        """Bring a file, or what a directory holds, to the cluster; see `towline.engine.staging.pushing.push`."""
        return await pushing.push(self._session, local, remote, progress)

    async def pull(
        self, remote: str, local: Path | None = None, *, progress: Callable[[Progress], None] | None = None
    ) -> PullReport:
        """Bring a file or a directory of the cluster home; see `towline.engine.staging.pulling.pull`."""
        return await pulling.pull(self._session, remote, local, progress)

    async def list_path(self, path: str, *, names: bool = True) -> Listing:
        """What is at a path of the cluster; see `towline.engine.listing.list_path`."""
        return await list_path(self._session, path, names=names)

    async def map(
        self,
        work: Work,
        items: Iterable[object],
        *,
        limit: int | None = None,
        secrets: Secrets | None = None,
        **fields: Any,
    ) -> AsyncJob:
        """Do the work once for each item, as the tasks of one array; `AsyncJob.gather` has what they made, in order.

        Args:
            work: a command or shell text, to which each item's words are added (shell text finds them in `$@`); or a
                function, which is called with the item and must import inside itself what it uses.
            items: for a command, texts or lists of texts; for a function, anything that JSON can hold.
            limit: tasks that run at a time; all that find room when not given.
            secrets: as `submit` takes them.
            fields: further fields of `JobSpec`, for example `image` and `resources`.

        Raises:
            SpecError: an item is of the wrong kind, or the function needs more than its own text; else as `submit`.
        """
        return await self.submit(map_spec(work, items, limit=limit, **fields), secrets=secrets)

    async def removable(self, wish: Wish) -> tuple[Item, ...]:
        """What on the cluster nobody uses any more, and is wished to go; nothing is removed."""
        return await cleaning.candidates(self._session, wish)

    async def clean(self, paths: Sequence[str]) -> Removed:
        """Remove what `removable` named, unless it is in use after all."""
        return await cleaning.remove(self._session, paths)

    async def remove(self, jobs: Sequence[AsyncJob]) -> Removed:
        """Remove jobs that have ended, with logs and results, and forget them here.

        Raises:
            UsageError: one has not ended.
        """
        return await cleaning.remove_jobs(self._session, [job.record for job in jobs])

    async def jobs(self, *, everything: bool = False) -> tuple[JobRecord, ...]:
        """This store's jobs on the cluster after one poll: those that have not ended, or all."""
        known = await observation.poll(self._session, self._session.store.jobs(self.profile.name))
        return self._session.store.jobs(self.profile.name, everything=True) if everything else known

    async def watch_jobs(
        self, *, everything: bool = False, interval: float | None = None
    ) -> AsyncIterator[tuple[JobRecord, ...]]:
        """The jobs, and again after each change of one of them; see `towline.engine.watching.streams.lists`."""
        async for records in streams.lists(self._session, everything=everything, interval=interval):
            yield records

    async def events(
        self,
        jobs: Sequence[AsyncJob] = (),
        *,
        after: int = 0,
        follow: bool = False,
        interval: float | None = None,
    ) -> AsyncIterator[JobEvent]:
        """What has happened to jobs, or to all of the cluster; with `follow` also what happens from now on.

        Every event is told once and has a number; whoever keeps the last one goes on from there with `after`.

        Args:
            jobs: the jobs; all when empty. Following ends when they have ended.
            after: the number of the last event that is known.
            follow: go on, whatever happens to the connection.
            interval: seconds between two looks at the queue, at least 2; the profile's when not given.
        """
        records = [job.record for job in jobs]
        async for event in streams.events(self._session, records, after=after, follow=follow, interval=interval):
            yield event

    async def attend(self, told: Callable[[JobEvent], None]) -> None:
        """Look after all jobs and tell what happens from now on, until this is cancelled."""
        newest = self._session.store.newest_event()
        while True:
            try:
                async for event in streams.events(self._session, after=newest, follow=True):
                    newest = event.number
                    told(event)
            except TowlineError:  # a key that is refused today may be taken tomorrow
                await asyncio.sleep(self.profile.poll_interval)

    async def snapshots(self, jobs: Sequence[AsyncJob], every: float) -> AsyncIterator[Snapshot]:
        """Each job now and then every so many seconds, until all have ended, however long the queue is.

        See `towline.engine.watching.streams.snapshots`.
        """
        async for snapshot in streams.snapshots(self._session, [job.record for job in jobs], every):
            yield snapshot

    async def adopt_all(self) -> Adopted:
        """The user's jobs on the cluster that this store does not know; see `towline.engine.adopting.adopt_all`."""
        return await adopt_all(self._session)

    async def find(self, references: Sequence[str]) -> tuple[AsyncJob, ...]:
        """The jobs that ids, Slurm ids or names mean, without asking the cluster.

        Raises:
            NotFound: one of them is not known.
            Ambiguous: several jobs of one name have not ended.
        """
        store = self._session.store
        return tuple(AsyncJob(self._session, find_job(store, self.profile.name, each)) for each in references)

    async def adopt(self, job_id: str) -> AsyncJob:
        """A job of one's own that another machine has submitted; see `towline.engine.adopting.adopt`."""
        return AsyncJob(self._session, await adopt(self._session, job_id))

    async def clock(self) -> datetime:
        """The time on the login host, in its zone: by it the times in logs are read."""
        return await reading.read_clock(self._session)

    async def close(self) -> None:
        """End what this object started."""
        self._session.part(Poller).close()
        await self._session.remote.close()
        self._session.store.close()

    async def __aenter__(self) -> AsyncCluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
