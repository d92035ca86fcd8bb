"""Who is told of a cluster's jobs, how that goes, and a message to try it with."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.config.files import resolve
from towline.config.paths import state_dir
from towline.config.profile import ClusterProfile, hidden_channel
from towline.engine.notifying import outbox
from towline.engine.notifying.outbox import Channel
from towline.engine.notifying.sending import by_apprise
from towline.engine.redaction import conceal
from towline.engine.store import Store
from towline.models.errors import ConfigError, NotFound

MISSING = ConfigError(
    "nobody is told of jobs as `notify` says", why="apprise is missing.", fix="pip install 'towline[notify]'"
)


@dataclass(frozen=True)
class ChannelState:
    """How a channel is doing.

    Attributes:
        channel: as the profile has it, without what may be secret.
        occasions: what is told there.
        waiting: notices that were not sent yet.
        error: why the last one could not be sent; empty when it could.
        tried: how the test message went, if one was sent: `sent`, or why not.
    """

    channel: str
    occasions: tuple[str, ...]
    waiting: int = 0
    error: str = ""
    tried: str = ""


def channels_of(profile: ClusterProfile, environment: Mapping[str, str]) -> tuple[Channel, ...]:
    """The channels that a profile names.

    Raises:
        ConfigError: apprise is missing, or a variable or file that is to hold a URL holds none.
    """
    if profile.notify and importlib.util.find_spec("apprise") is None:
        raise MISSING
    wanted = frozenset(profile.notify_on)
    return tuple(Channel(profile.name, _url_of(each, environment), wanted) for each in profile.notify)


def _url_of(text: str, environment: Mapping[str, str]) -> str:
    """The URL that a setting means: itself, or what a variable or a file holds."""
    kind, _, place = text.partition(":")
    url = text
    try:
        if kind == "env":
            url = environment.get(place, "").strip()
        elif kind == "file" and not place.startswith("//"):
            url = Path(place).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"nobody is told of jobs by {text}", why=str(error), fix="Correct `notify`.") from None
    if not url:
        raise ConfigError(f"nobody is told of jobs by {text}", why="It holds nothing.", fix="Correct `notify`.")
    conceal([url])
    return url


def show(name: str | None, *, test: bool) -> tuple[ChannelState, ...]:
    """How the channels of a profile are doing.

    Args:
        name: the profile; the default one when not given.
        test: send a message to each now.

    Raises:
        NotFound: it names none.
        ConfigError: there is no such profile, or something in it is wrong.
    """
    profile = resolve(name).profile
    channels = channels_of(profile, os.environ)
    if not channels:
        raise NotFound(
            f"nobody is told of jobs on {profile.name}",
            fix='Set `notify` in the profile, for example notify = ["env:SLACK_URL"].',
        )
    store = Store(state_dir())
    try:
        return tuple(
            _state(store, text, channel, test=test) for text, channel in zip(profile.notify, channels, strict=True)
        )
    finally:
        store.close()


def _state(store: Store, text: str, channel: Channel, *, test: bool) -> ChannelState:
    waiting, error = outbox.standing(store, channel)
    tried = ""
    if test:
        told = by_apprise(channel.url, f"A test from Towline ({channel.cluster})", _told(channel.occasions), "info")
        tried = told or "sent"
    return ChannelState(hidden_channel(text), tuple(sorted(channel.occasions)), waiting, error, tried)


def _told(occasions: Sequence[str] | frozenset[str]) -> str:
    return f"This is where jobs are told that {', '.join(sorted(occasions))}."
