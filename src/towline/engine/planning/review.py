"""A plan that somebody has read, named by its hash: what is confirmed later is sent exactly so, or not at all.

The hash is made of every byte that the submission would write, so it is also the job's identity: the id that the job
will have is part of it. Confirming one review twice therefore gives one job.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from towline.models.plan import Plan
from towline.models.spec import JobSpec

LIFETIME = 3600.0
"""Seconds for which a review can be confirmed: free nodes, limits and images change."""
HASH_DIGITS = 16
_VERSION = 1


@dataclass(frozen=True)
class SeenSecret:
    """Where the value of one secret is; never the value.

    Attributes:
        name: the variable that the job gets.
        source: where it is taken from, as `--secret` writes it.
        present: whether it was there; None when only a person or the desktop's keyring can tell.
    """

    name: str
    source: str
    present: bool | None

    @property
    def option(self) -> str:
        """The argument of `--secret` that says so."""
        return f"{self.name}={self.source}" if self.source else self.name


@dataclass(frozen=True)
class Review:
    """What was shown, and may be confirmed.

    Attributes:
        job_id: the id that the job will have.
        cluster: the profile's name.
        spec: the job as it was asked for.
        secrets: where the values of its secrets are.
        parts: what the plan consists of, each with its hash.
        expires: seconds since 1970 on this machine's clock.
    """

    job_id: str
    cluster: str
    spec: JobSpec
    secrets: tuple[SeenSecret, ...]
    parts: Mapping[str, str]
    expires: float

    @property
    def hash(self) -> str:
        """The name of this review, 16 hexadecimal digits."""
        return _digest(json.dumps([_VERSION, self.job_id, self.cluster, sorted(self.parts.items())]).encode())

    def differences(self, plan: Plan) -> tuple[str, ...]:
        """The parts of a plan that are not as they were shown, by name."""
        now = parts_of(plan)
        names = sorted({*self.parts, *now})
        return tuple(name for name in names if self.parts.get(name) != now.get(name))

    def to_json(self) -> str:
        """Text that `from_json` reads."""
        secrets = [[each.name, each.source, each.present] for each in self.secrets]
        return json.dumps(
            {
                "version": _VERSION,
                "job_id": self.job_id,
                "cluster": self.cluster,
                "spec": self.spec.model_dump(mode="json"),
                "secrets": secrets,
                "parts": dict(self.parts),
                "expires": self.expires,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Review:
        """Read what `to_json` wrote.

        Raises:
            ValueError: it is not that, or another version's.
        """
        try:
            found = json.loads(text)
            if found["version"] != _VERSION:
                raise ValueError(f"version {found['version']}")
            return cls(
                job_id=str(found["job_id"]),
                cluster=str(found["cluster"]),
                spec=JobSpec.model_validate(found["spec"]),
                secrets=tuple(SeenSecret(*each) for each in found["secrets"]),
                parts={str(name): str(value) for name, value in found["parts"].items()},
                expires=float(found["expires"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None


def parts_of(plan: Plan) -> dict[str, str]:
    """Everything that a submission would send or rely on, each with its hash."""
    return {name: _digest(content) for name, content in _parts(plan)}


def _parts(plan: Plan) -> Iterator[tuple[str, bytes]]:
    yield from plan.files.items()
    yield "the command sbatch", json.dumps([plan.directory, *plan.sbatch]).encode()
    if plan.code:
        yield "the code", plan.code.place.encode()
    for image in plan.images:
        yield f"the image {image.reference}", json.dumps([image.path, image.arch, image.digest]).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:HASH_DIGITS]
