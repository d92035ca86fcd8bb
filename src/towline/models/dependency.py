"""`Dependency`: what must have become of another job before this one may start."""

from __future__ import annotations

import re
from typing import Annotated, Literal, cast, get_args

from pydantic import BeforeValidator, model_validator

from towline.models.fields import Model

DependencyKind = Literal["after", "afterok", "afterany", "afternotok", "aftercorr", "singleton"]
"""Slurm's own words (sbatch(1), `--dependency`)."""

_KINDS: tuple[str, ...] = get_args(DependencyKind)
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*(\[\d+\])?")


def _reference(value: object) -> object:
    """A job object of the Python API as its reference; anything else as it is."""
    found = getattr(value, "reference", None)
    return found if isinstance(found, str) else value


class Dependency(Model):
    """One condition.

    Attributes:
        kind: `afterok`: the other job succeeded; `afternotok`: it ended otherwise; `afterany`: it ended; `after`: it
            began or was cancelled; `aftercorr`: each task of this array waits for the success of the same task of the
            other; `singleton`: every job of this one's name has ended.
        job: the other job: an id, a Slurm id or a name, one task of an array as `JOB_3`; empty for `singleton`.
    """

    kind: DependencyKind = "afterok"
    job: Annotated[str, BeforeValidator(_reference)] = ""

    @model_validator(mode="after")
    def _fits(self) -> Dependency:
        if self.kind == "singleton" and self.job:
            raise ValueError("singleton names no job: it means every other one of the same name")
        if self.kind != "singleton" and not _REFERENCE.fullmatch(self.job):
            raise ValueError(f"{self.job!r} does not name a job; give an id, a Slurm id, a name, or JOB_3 for a task")
        return self

    @classmethod
    def parse(cls, text: str) -> Dependency:
        """Read `JOB` (which means `afterok`), `KIND:JOB` or `singleton`.

        Raises:
            ValueError: it is none of these.
        """
        kind, colon, job = text.partition(":")
        if text == "singleton":
            return cls(kind="singleton")
        if not colon:
            return cls(job=text)
        if kind not in _KINDS or kind == "singleton":
            raise ValueError(f"{kind!r} is no kind of dependency; there are {', '.join(_KINDS)}")
        return cls(kind=kind, job=job)  # pyright: ignore[reportArgumentType]

    def __str__(self) -> str:
        return f"{self.kind}:{self.job}" if self.job else self.kind


def as_dependency(value: object) -> object:
    """What a spec may hold in the place of a `Dependency`: text, or a job object of the Python API."""
    value = _reference(value)
    return Dependency.parse(value) if isinstance(value, str) else value


def as_dependencies(value: object) -> object:
    """One dependency or several, as a list."""
    if value is None or isinstance(value, (list, tuple)):
        return () if value is None else cast("object", value)
    return (value,)


AnyDependency = Annotated[Dependency, BeforeValidator(as_dependency, json_schema_input_type=Dependency | str)]
