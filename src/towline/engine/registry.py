"""Registry credentials on the cluster, and whether an image can be had with them."""

from __future__ import annotations

from dataclasses import dataclass

from towline.config.files import resolve
from towline.config.profile import ClusterProfile
from towline.container.registry import (
    NGC,
    NGC_USER,
    Manifest,
    Verdict,
    check_call,
    credential_lines,
    login_call,
    machine_of,
    parse_login,
    parse_manifest,
    registry_host,
    told_tags,
    verdict_of,
)
from towline.engine.outcomes import expect_done
from towline.engine.reaching import open_remote
from towline.models.errors import AccessRefused, NotFound, RemoteFault, TowlineError, Unreachable, UsageError
from towline.models.image import Image
from towline.remote.base import Operation
from towline.slurm.calls import Call

_SECONDS = 150.0


@dataclass(frozen=True)
class LoggedIn:
    """The cluster's credentials file after a login.

    Attributes:
        file: its path there.
        user: the user that was written.
        machines: registry and user of each line in it.
        verdict: what the registry said to the key.
        why: why it could not be tried; empty when it could.
    """

    file: str
    user: str
    machines: tuple[tuple[str, str], ...]
    verdict: Verdict
    why: str


async def login(cluster: str | None, registry: str, key: str, user: str = "", *, tried: bool = True) -> LoggedIn:
    """Write a registry's user and key into the cluster's Enroot credentials, once the registry has taken them.

    The key travels as an operation's file and is in no argument list, log or answer. It is tried from the login host;
    where that cannot be, it is written all the same.

    Args:
        cluster: the profile's name; None for the default one.
        registry: host, and port if there is one.
        key: the password or API key.
        user: `$oauthtoken` for nvcr.io when not given.
        tried: whether it is tried before.

    Raises:
        UsageError: registry, user or key could not stand in the file.
        AccessRefused: the registry does not take the key; nothing was written.
        Unreachable, RemoteFault: nothing was written.
    """
    user = user or (NGC_USER if machine_of(registry) == NGC else "")
    if not user:
        raise UsageError(f"the user for {registry} is missing", fix="Give it with --user.")
    try:
        lines = credential_lines(registry, user, key)
    except ValueError as error:
        raise UsageError(str(error), fix="Give it as the registry shows it, without quotation marks.") from None
    profile = resolve(cluster).profile
    call = login_call(lines, profile.setup, (registry_host(registry), user) if tried else None)
    stdout = await _run(profile, call, "writing the registry's credentials")
    try:
        found, said = parse_login(stdout)
    except ValueError as error:
        raise RemoteFault("it is not known whether the key was written", why=str(error), fix="Try again.") from None
    verdict, why = verdict_of(said, registry) if said else (Verdict.UNTRIED, "that was not wanted")
    if verdict is Verdict.WRONG:
        raise AccessRefused(
            f"{registry} does not take this key of {user}; nothing was written to {found.path}",
            why=f"{why}.",
            fix="Give it again, see that it has not expired and is of this user, or write it as it is with --untried.",
        )
    return LoggedIn(found.path, user, found.machines, verdict, why)


async def check(cluster: str | None, image: str) -> Manifest:
    """Ask for an image's manifest from the cluster's side, with the cluster's credentials.

    Raises:
        UsageError: the image is a file or no reference.
        Unreachable, RemoteFault: it could not be asked.
    """
    profile = resolve(cluster).profile
    try:
        call = check_call(Image.parse(image), profile.setup)
    except ValueError as error:
        raise UsageError(str(error), fix="Name an image in a registry.") from None
    stdout = await _run(profile, call, "asking the registry")
    try:
        found = parse_manifest(stdout)
    except ValueError as error:
        raise RemoteFault("the registry could not be asked", why=str(error), fix="Try again.") from None
    if not found.curl:
        raise RemoteFault(
            "the registry could not be asked",
            why="There is no curl on the login host.",
            fix="Try a job with the image.",
        )
    return found


def problem(found: Manifest, image: str) -> TowlineError | None:
    """What a registry's answer means, as an error; None when the image can be had."""
    if found.found:
        return None
    registry = Image.parse(image).registry or "docker.io"
    used = f"the line `machine {found.line.replace(' ', ' login ')}` of {found.file}" if found.line else ""
    if not found.code:
        return Unreachable(
            f"{registry} could not be reached from the login host",
            why=found.words or "It did not answer.",
            fix="See that the registry's name and port are right and that the site lets its hosts go there.",
        )
    if found.code in (401, 403) or found.token in (401, 403):
        return _refused(found, image, registry, used)
    if found.code == 404:
        with_ = f" with {used}" if used else ""
        tags = told_tags(Image.parse(image).tag or "latest", found.tags)
        return NotFound(
            f"{registry} has no image {image}",
            why=" ".join(filter(None, [f"{found.url} was answered with 404{with_}.", tags])),
            fix="Choose one of its tags."
            if tags
            else "See that repository and tag are right; some registries say so to users without access, too.",
        )
    return RemoteFault(f"{registry} answered {found.code}", why=found.url, fix="Try again in a while.")


def _refused(found: Manifest, image: str, registry: str, used: str) -> AccessRefused:
    """It wants a key that it has not got, or another one. A token's host wants its own line in the credentials file."""
    sent_on = f" It sends clients to {found.realm} for a token." if found.token else ""
    own = machine_of(registry)
    place = found.realm if found.token and found.realm not in ("", own) and own != NGC else registry
    if used:
        why = f"It answered {found.token or found.code} with {used}.{sent_on}"
    else:
        why = f"{found.file} has no line for {machine_of(place)}.{sent_on}"
    user = "" if machine_of(place) == NGC else " --user NAME"
    return AccessRefused(f"{registry} does not give {image}", why=why, fix=f"towline registry login {place}{user}")


async def _run(profile: ClusterProfile, call: Call, doing: str) -> str:
    remote = open_remote(profile)
    try:
        outcome = await remote.run(Operation(call.name, call.script, call.args, call.files, _SECONDS))
    finally:
        await remote.close()
    return expect_done(outcome, doing).decode("utf-8", "replace")
