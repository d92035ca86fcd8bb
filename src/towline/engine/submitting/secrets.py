"""The values of a job's secrets: taken from where the caller keeps them, checked, and kept out of everything shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from towline.engine.redaction import conceal
from towline.models.errors import PlanRefused, SpecError
from towline.models.secrets import MAX_SECRETS_BYTES, AnySecret, Secret, Secrets
from towline.models.spec import JobSpec

_TELLING = 8
"""Bytes from which on a value's appearance elsewhere in a job cannot be chance."""


def take_secrets(spec: JobSpec, given: Secrets | None) -> dict[str, Secret]:
    """The value of each secret that the spec names; others in a mapping are passed over.

    Raises:
        SpecError: one has no value, or one that no variable can carry.
        PlanRefused: a value stands elsewhere in the spec, where it would be written down for all to read.
    """
    found = {name: _read(name, _look_up(given, name)) for name in spec.secrets}
    if missing := [name for name, value in found.items() if value is None]:
        raise SpecError(
            f"the job's secret{'s have' if len(missing) > 1 else ' has'} no value: {', '.join(missing)}",
            why="A spec only names its secrets; their values are given when the job is submitted.",
            fix="On the command line: --secret NAME (docs/secrets.md). In Python: submit(spec, secrets={NAME: value}).",
        )
    values = {name: value for name, value in found.items() if value is not None}
    _check_size(values)
    conceal(value.reveal().decode("utf-8", "replace") for value in values.values())
    _check_apart(spec, values)
    return values


def known_secrets(spec: JobSpec, given: Secrets | None) -> dict[str, Secret]:
    """The same of those that have a value now; nothing is refused for the others.

    Raises:
        SpecError, PlanRefused: see `take_secrets`.
    """
    known = tuple(name for name in spec.secrets if _look_up(given, name) is not None)
    return take_secrets(spec.model_copy(update={"secrets": known}), given)


def _look_up(given: Secrets | None, name: str) -> AnySecret | None:
    if given is None or callable(given):
        return given(name) if given else None
    return given.get(name)


def _read(name: str, value: AnySecret | None) -> Secret | None:
    if value is None or isinstance(value, Secret):
        return value
    try:
        return Secret(value)
    except ValueError as error:
        raise SpecError(
            f"the value of the secret {name} cannot be used",
            why=f"{str(error)[:1].upper()}{str(error)[1:]}.",
            fix="Give another value; nothing was sent to the cluster.",
        ) from None


def _check_size(values: Mapping[str, Secret]) -> None:
    size = sum(len(value.reveal()) for value in values.values())
    if size > MAX_SECRETS_BYTES:
        raise SpecError(
            "the job's secrets are too large to be variables",
            why=f"They have {size} bytes in all; {MAX_SECRETS_BYTES} is the most.",
            fix="Put the large ones into files on the cluster that only you can read, and mount these.",
        )


def _check_apart(spec: JobSpec, values: Mapping[str, Secret]) -> None:
    """The mistake is easily made: in `--secret KEY -- curl -H "Key: $KEY"` the local shell puts the value in."""
    found = (*_texts(spec.model_dump(mode="json")), *spec.labels, *spec.env)
    texts = [text.encode("utf-8", "surrogateescape") for text in found]
    for name, value in values.items():
        data = value.reveal()
        if len(data) >= _TELLING and any(data in text for text in texts):
            raise PlanRefused(
                f"the value of the secret {name} stands in the job's description",
                why="A job's command, environment and comment are written into files and shown in lists.",
                fix=f"Let the command read the variable {name} itself: in single quotes your own shell does not "
                f"replace ${name}.",
            )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _all_texts(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        yield from _all_texts(cast("list[object]", value))


def _all_texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        yield from _texts(value)
