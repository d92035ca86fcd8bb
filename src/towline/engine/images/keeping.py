"""The cache of images for its keeper: list, pull, remove, prune, verify."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from towline.config.files import resolve
from towline.config.paths import state_dir
from towline.container.cache import Nodes, check_name
from towline.container.housekeeping import (
    Removal,
    Shelved,
    images_call,
    parse_images,
    parse_removals,
    remove_call,
    to_prune,
)
from towline.engine.images.importing import ImportNews, made
from towline.engine.images.preparing import cache_of, decide, find
from towline.engine.outcomes import check_ending, last_words
from towline.engine.reaching import open_remote
from towline.engine.session import Session
from towline.engine.store import Store
from towline.engine.watching.observation import site_facts
from towline.models.errors import PlanRefused, RemoteFault, UsageError
from towline.models.image import Image
from towline.models.plan import PlannedImage, Verdict
from towline.remote.base import Operation
from towline.slurm.calls import Call
from towline.slurm.submission import environment_error

_T = TypeVar("_T")

SECONDS = 1800.0
"""Time limit of reading images whole."""


@asynccontextmanager
async def session_of(cluster: str | None) -> AsyncGenerator[Session, None]:
    """A session with the cluster of that profile name, or the default one."""
    profile = resolve(cluster).profile
    session = Session(profile, open_remote(profile), Store(state_dir()))
    try:
        yield session
    finally:
        await session.remote.close()
        session.store.close()


async def listed(cluster: str | None, names: Sequence[str] = (), *, read: bool = False) -> tuple[Shelved, ...]:
    """The images of the cache, all or these; `read` compares checksums, too.

    Raises:
        UsageError: one of the names cannot be one.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    async with session_of(cluster) as session:
        return await _listed(session, _checked(names), read=read)


async def removed(cluster: str | None, names: Sequence[str]) -> tuple[Removal, ...]:
    """Take these images away; one that a job uses stays.

    Raises:
        As `listed` does.
    """
    async with session_of(cluster) as session:
        return await _removed(session, _checked(names))


async def pruned(
    cluster: str | None, *, idle: int | None, keep: int | None, dry_run: bool
) -> tuple[tuple[Shelved, ...], tuple[Removal, ...]]:
    """Take away what was not used for `idle` seconds, and what is more than `keep` bytes; never what is in use.

    Returns:
        What was chosen, and what became of it; nothing did in a dry run.

    Raises:
        As `listed` does.
    """
    async with session_of(cluster) as session:
        chosen = to_prune(await _listed(session, ()), idle=idle, keep=keep)
        if dry_run or not chosen:
            return chosen, ()
        return chosen, await _removed(session, [each.image.name for each in chosen])


async def pulled(
    cluster: str | None, text: str, partition: Sequence[str], told: Callable[[ImportNews], None]
) -> PlannedImage:
    """Have an image made a file, and wait for it; the registry is asked whatever `image_tags` says.

    Args:
        cluster: the profile's name; None for the default one.
        text: the image.
        partition: whose nodes it is for; the profile's or the site's when empty.
        told: called now and then meanwhile.

    Raises:
        UsageError: the image is a file, or no reference.
        PlanRefused: the registry does not give it.
        StagingFailed: the import failed.
        SlurmRefused: it was not submitted.
        Unreachable, OutcomeUnknown, WaitTimedOut, RemoteFault: the cluster did not answer.
    """
    try:
        image = Image.parse(text)
    except ValueError as error:
        raise UsageError(str(error), fix="Name an image in a registry.") from None
    if image.is_file:
        raise UsageError(f"{text} is a file already", fix="Name an image in a registry.")
    async with session_of(cluster) as session:
        session = replace(session, profile=session.profile.model_copy(update={"image_tags": "check"}))
        facts, _ = await site_facts(session)
        default = (facts.default_partition.name,) if facts.default_partition else ()
        nodes = Nodes(partition or session.profile.partition or default)
        planned, check, _ = decide(text, await find(session, image, nodes), session.profile, time.time())
        if planned is None or check.verdict is Verdict.FAILS:
            raise PlanRefused(f"{text} cannot be imported", why=check.evidence, fix=check.fix)
        if not planned.ready:
            await made(session, planned, told)
        return replace(planned, ready=True)


def _checked(names: Sequence[str]) -> list[str]:
    try:
        return [check_name(name.rpartition("/")[2].removesuffix(".sqsh")) for name in names]
    except ValueError as error:
        raise UsageError(str(error), fix="`towline images ls` lists the names.") from None


async def _listed(session: Session, names: Sequence[str], *, read: bool = False) -> tuple[Shelved, ...]:
    profile = session.profile
    call = images_call(profile.root, cache_of(profile), names, read="sum" if read else "list", setup=profile.setup)
    return _parsed(parse_images, await _run(session, call, "listing the images"))


async def _removed(session: Session, names: Sequence[str]) -> tuple[Removal, ...]:
    profile = session.profile
    call = remove_call(profile.root, cache_of(profile), names, profile.setup)
    return _parsed(parse_removals, await _run(session, call, "removing images"))


def _parsed(read: Callable[[str], tuple[_T, ...]], stdout: str) -> tuple[_T, ...]:
    try:
        return read(stdout)
    except ValueError as error:
        raise RemoteFault("the images could not be looked at", why=str(error), fix="Try again in a while.") from None


async def _run(session: Session, call: Call, doing: str) -> str:
    outcome = await session.run(Operation(call.name, call.script, call.args, call.files, SECONDS))
    check_ending(outcome, doing)
    if error := environment_error(outcome.exit_code or 0, last_words(outcome.stderr)):
        raise error
    return outcome.stdout.decode("utf-8", "replace")
