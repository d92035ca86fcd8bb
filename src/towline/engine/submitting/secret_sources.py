"""Where a person keeps the values of secrets: variables, files, the desktop's keyring, or the head."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from towline.config.tao import read_tao_secret
from towline.engine.planning.review import SeenSecret
from towline.engine.submitting.secrets import take_secrets
from towline.models.errors import ConfigError, UsageError
from towline.models.spec import JobSpec
from towline.models.values import check_env_name

KEYRING_SERVICE = "towline"
"""The service below which the keyring is asked for a secret's name when no other is given."""

_KINDS = ("env", "file", "keyring", "prompt")
_EXPLAINED = "env:VARIABLE, file:PATH, keyring[:SERVICE] or prompt"

Ask = Callable[[str], str]
"""Asks a person for the value of the secret with that name, without showing it."""


@dataclass(frozen=True)
class Source:
    """Where the value of one secret is.

    Attributes:
        name: the secret's name.
        kind: `env`, `file`, `keyring`, `prompt`, or empty for the first that has it of the variables, TAO's own file
            of variables, the keyring, and the person.
        place: the variable, the path, or the keyring's service.
    """

    name: str
    kind: str = ""
    place: str = ""

    @classmethod
    def parse(cls, text: str) -> Source:
        """Read `NAME` or `NAME=KIND[:PLACE]`.

        Raises:
            UsageError: it is neither; what stands behind `=` is not shown, for it may be the value itself.
        """
        name, equals, where = text.partition("=")
        try:
            check_env_name(name)
        except ValueError as error:
            raise UsageError("--secret needs a name", why=str(error) if not equals else "", fix=_FORM) from None
        kind, colon, place = where.partition(":")
        if equals and (kind not in _KINDS or (kind in ("env", "file") and not place) or (kind == "prompt" and colon)):
            raise UsageError(
                f"--secret {name}=… does not say where the value is",
                why="A value itself never stands on the command line, where `ps` shows it to everybody.",
                fix=f"Write --secret {name} for the variable of that name, or behind `=` one of {_EXPLAINED}.",
            )
        return cls(name, kind, place)

    @property
    def words(self) -> str:
        """What stands behind `=` in `--secret`; empty when nothing does."""
        return f"{self.kind}:{self.place}" if self.place else self.kind


_FORM = f"Write --secret NAME, or --secret NAME=SOURCE with {_EXPLAINED}."


def read_source(source: Source, env: Mapping[str, str], ask: Ask | None) -> str | bytes:
    """The value.

    Args:
        source: where it is.
        env: the variables of this process.
        ask: asks a person; None when there is nobody to ask.

    Raises:
        UsageError: it is not there.
        ConfigError: the file or the keyring cannot be read.
    """
    if source.kind:
        return _FROM[source.kind](source, env, ask)
    value = env.get(source.name) or read_tao_secret(source.name, env)
    if value is None:
        value = _in_keyring(source) if importlib.util.find_spec("keyring") else None
    return _asked(source, env, ask) if value is None else value


def sources_for(spec: JobSpec, given: Sequence[str]) -> tuple[Source, ...]:
    """Where the value of each of the spec's secrets is, by what `--secret` says.

    Raises:
        UsageError: one does not say it.
    """
    said = {source.name: source for source in map(Source.parse, given)}
    return tuple(said.get(name, Source(name)) for name in spec.secrets)


def look_ahead(spec: JobSpec, sources: Iterable[Source], env: Mapping[str, str]) -> dict[str, str | bytes]:
    """Before a job is only shown: what can be read without asking anybody is hidden, and refused as in a submission.

    Args:
        spec: the job.
        sources: where the values are.
        env: the variables of this process.

    Returns:
        The values that could be read.

    Raises:
        SpecError, PlanRefused: see `take_secrets`.
    """
    values: dict[str, str | bytes] = {}
    for source in sources:
        with contextlib.suppress(UsageError, ConfigError):
            value = _FROM[source.kind](source, env, None) if source.kind in ("env", "file") else env.get(source.name)
            if value is not None:
                values[source.name] = value
    take_secrets(spec.model_copy(update={"secrets": tuple(values)}), values)
    return values


def seen_secrets(sources: Iterable[Source], env: Mapping[str, str]) -> tuple[SeenSecret, ...]:
    """Whether each value is there, without asking a person or the desktop; no value is kept.

    Args:
        sources: where the values are.
        env: the variables of this process.
    """
    return tuple(SeenSecret(source.name, source.words, _is_present(source, env)) for source in sources)


def _is_present(source: Source, env: Mapping[str, str]) -> bool | None:
    if source.kind in ("prompt", "keyring"):
        return None
    if source.kind:
        try:
            return bool(_FROM[source.kind](source, env, None))
        except (UsageError, ConfigError):
            return False
    if env.get(source.name) or read_tao_secret(source.name, env):
        return True
    return None if importlib.util.find_spec("keyring") else False


def drop_variables(sources: Iterable[Source], env: MutableMapping[str, str]) -> None:
    """Take out the variables that held secrets: ssh, which stays for the next process, shall not inherit them."""
    for source in sources:
        if source.kind in ("", "env"):
            env.pop(source.place or source.name, None)


def _from_env(source: Source, env: Mapping[str, str], _ask: Ask | None) -> str:
    value = env.get(source.place)
    if value is None:
        raise UsageError(
            f"the secret {source.name} has no value: the variable {source.place} is not set",
            fix=f"Set and export {source.place}, or name another source.",
        )
    return value


def _from_file(source: Source, _env: Mapping[str, str], _ask: Ask | None) -> bytes:
    path = Path(source.place).expanduser()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the secret {source.name} cannot be read from {path}", why=error.strerror or str(error)
        ) from None
    return data.removesuffix(b"\n").removesuffix(b"\r")  # the end of the line that an editor adds


def _from_keyring(source: Source, _env: Mapping[str, str], _ask: Ask | None) -> str:
    value = _in_keyring(source)
    if value is None:
        service = source.place or KEYRING_SERVICE
        raise UsageError(
            f"the secret {source.name} has no value: the keyring has none for {source.name} of {service}",
            fix=f"Put it there: keyring set {service} {source.name}",
        )
    return value


def _asked(source: Source, _env: Mapping[str, str], ask: Ask | None) -> str:
    if ask is None:
        raise UsageError(
            f"the secret {source.name} has no value, and nobody can be asked for it",
            fix=f"Set and export the variable {source.name}, or write --secret {source.name}=SOURCE with {_EXPLAINED}.",
        )
    return ask(source.name)


_FROM = {"env": _from_env, "file": _from_file, "keyring": _from_keyring, "prompt": _asked}


class _Keyring(Protocol):
    """What is used of the package `keyring`, which is an extra."""

    def get_password(self, service_name: str, username: str) -> str | None: ...


def _in_keyring(source: Source) -> str | None:
    try:
        keyring = cast("_Keyring", importlib.import_module("keyring"))
    except ImportError:
        raise ConfigError(
            f"the secret {source.name} cannot be read from the keyring",
            why="The Python package `keyring` is not installed here.",
            fix="Install it with `pip install 'towline[keyring]'`, or name another source.",
        ) from None
    try:
        return keyring.get_password(source.place or KEYRING_SERVICE, source.name)
    except Exception as error:  # each of its back ends has errors of its own
        if not source.kind:
            return None
        raise ConfigError(f"the keyring could not be asked for the secret {source.name}", why=str(error)) from None
