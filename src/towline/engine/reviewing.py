"""Reviews on this machine: made, kept for an hour, and confirmed at most once."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from towline.config.paths import state_dir
from towline.engine.planning.review import HASH_DIGITS, LIFETIME, Review, SeenSecret, parts_of
from towline.models.errors import ConfigError, NotFound, PlanRefused, UsageError, WaitTimedOut
from towline.models.job import JobState
from towline.models.plan import Plan
from towline.remote.locks import try_lock

if TYPE_CHECKING:
    from towline.engine.cluster import AsyncCluster
    from towline.engine.events import Held
    from towline.engine.job import AsyncJob
    from towline.models.secrets import Secrets
    from towline.models.spec import JobSpec

_HASH = re.compile(rf"[0-9a-f]{{{HASH_DIGITS}}}")


async def review(
    cluster: AsyncCluster, spec: JobSpec, sources: Sequence[SeenSecret] = (), *, secrets: Secrets | None = None
) -> tuple[Review, Plan]:
    """Plan a job, look at the cluster, and keep what was found, so that it can be confirmed; nothing is sent.

    Args:
        cluster: where it would run.
        spec: the job.
        sources: where the values of its secrets are.
        secrets: the values as far as they are known, see `AsyncCluster.plan`; none of them is kept.

    Raises:
        TowlineError: the cluster could not be asked, or the review cannot be kept.
    """
    plan = await cluster.plan(spec, look=True, secrets=secrets)
    expires = time.time() + LIFETIME
    made = Review(plan.job_id, cluster.profile.name, spec, tuple(sources), parts_of(plan), expires)
    if not plan.failures and not missing(made):
        _keep(made)
    return made, plan


def missing(made: Review) -> tuple[str, ...]:
    """The secrets whose values were not there."""
    return tuple(secret.name for secret in made.secrets if secret.present is False)


def find(wanted: str) -> Review:
    """The review of that hash.

    Raises:
        UsageError: that is no hash.
        NotFound: there is none, or it has expired.
        ConfigError: it cannot be read.
    """
    if not _HASH.fullmatch(wanted):
        raise UsageError(f"{wanted!r} names no review", fix="Give the hash that `towline review` printed.")
    path = _folder() / f"{wanted}.json"
    try:
        found = Review.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(
            f"there is no review {wanted}",
            why="It was never made here, or it has expired.",
            fix="Run `towline review` again with the job's arguments.",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the review {wanted} cannot be read", why=str(error), fix="Run `towline review` again."
        ) from None
    if found.hash != wanted:
        raise ConfigError(
            f"the review {wanted} is not what it was", why=f"{path} has changed.", fix="Run `towline review` again."
        )
    return found


async def confirm(
    cluster: AsyncCluster,
    reviewed: Review,
    *,
    secrets: Secrets | None = None,
    patience: float | None = None,
    told: Callable[[Held], None] | None = None,
) -> AsyncJob:
    """Submit exactly what was reviewed; the job of an earlier confirmation, when there was one.

    Args:
        cluster: the review's cluster.
        reviewed: what was shown.
        secrets: as `AsyncCluster.submit` takes them.
        patience: as `AsyncCluster.submit` takes it.
        told: called before each pause.

    Raises:
        NotFound: the review has expired.
        WaitTimedOut: another process confirms it at this moment.
        PlanRefused: the same words would do something else now, or a check fails.
        TowlineError: as `AsyncCluster.submit`.
    """
    with _alone(_folder() / f"{reviewed.hash}.json"):
        if job := await _submitted(cluster, reviewed):
            return job
        if reviewed.expires < time.time():
            raise NotFound(
                f"the review {reviewed.hash} has expired",
                why=f"A review can be confirmed for {LIFETIME / 60:.0f} minutes.",
                fix="Run `towline review` again with the job's arguments.",
            )
        plan = await cluster.plan(reviewed.spec, job_id=reviewed.job_id, secrets=secrets)
        if changed := reviewed.differences(plan):
            raise PlanRefused(
                "the job would not be what was reviewed; nothing was sent",
                why=f"This has changed since: {', '.join(changed)}.",
                fix="Run `towline review` again, and read what is different.",
            )
        return await cluster.submit(reviewed.spec, plan, secrets=secrets, patience=patience, told=told)


@contextlib.contextmanager
def _alone(path: Path) -> Generator[None, None, None]:
    """One confirmation of a review at a time: the next one finds the job of the first."""
    handle = os.open(path, os.O_RDWR)
    try:
        mine = True
        with contextlib.suppress(OSError):  # a file system without locks
            mine = try_lock(handle)
        if not mine:
            raise WaitTimedOut(
                f"the review {path.stem} is being confirmed by another process",
                fix="Run the command again in a moment: it finds the job of that one.",
            )
        yield
    finally:
        os.close(handle)


async def _submitted(cluster: AsyncCluster, reviewed: Review) -> AsyncJob | None:
    try:
        (job,) = await cluster.find([reviewed.job_id])
    except NotFound:
        return None
    if job.record.state is JobState.REFUSED:
        raise PlanRefused(
            f"the job of review {reviewed.hash} was not taken",
            why=job.record.note,
            fix="Mend that, and run `towline review` again.",
        )
    return job


def _keep(made: Review) -> None:
    folder = _folder()
    path = folder / f"{made.hash}.json"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _forget_old(folder)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(made.to_json())
        fresh.replace(path)
    except OSError as error:
        raise ConfigError(
            "the review cannot be kept, so it could not be confirmed",
            why=f"{path}: {error.strerror or error}",
            fix="Free the disk, or set TOWLINE_STATE_DIR to another place.",
        ) from None


def _forget_old(folder: Path) -> None:
    """A confirmed review answers for some hours more, so that confirming it again finds its job."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - 24 * LIFETIME:
                path.unlink()


def _folder() -> Path:
    return state_dir() / "reviews"
