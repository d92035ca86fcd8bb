"""`Doctor`: an examination of one cluster, as the doors use it."""

from __future__ import annotations

from collections.abc import Sequence

from towline.config.files import resolve
from towline.config.profile import ClusterProfile
from towline.engine.doctor import mend
from towline.engine.doctor.checks import examine, exit_status
from towline.engine.doctor.facts import Facts, Finding, Repair
from towline.engine.doctor.gather import Opener, entered, gather, look_deep
from towline.engine.reaching import open_remote


class Doctor:
    """An examination of one cluster.

    Args:
        profile: the cluster's settings.
        notes: what the user should know of how the profile was found.
        opener: how login hosts are reached.

    Attributes:
        facts: what the last examination saw.
    """

    def __init__(
        self,
        profile: ClusterProfile,
        notes: Sequence[str] = (),
        *,
        opener: Opener = open_remote,
    ) -> None:
        self.notes = tuple(notes)
        self.facts: Facts | None = None
        self._profile = profile
        self._opener = opener
        self._entered = frozenset[str]()

    @classmethod
    def open(cls, name: str | None = None) -> Doctor:
        """Of the cluster with that profile name, or the default one.

        Raises:
            ConfigError, NotFound: there is no such profile, or a setting in it is wrong.
        """
        found = resolve(name)
        return cls(found.profile, found.notes)

    @property
    def name(self) -> str:
        """The profile's name."""
        return self._profile.name

    async def examine(self, *, deep_seconds: int | None = None) -> tuple[Finding, ...]:
        """Every check's findings.

        Args:
            deep_seconds: run a job as well, which may wait this long to start.
        """
        facts = await gather(self._profile, opener=self._opener, before=self._entered)
        self._entered = entered(facts)
        if deep_seconds is not None:
            facts = await look_deep(facts, deep_seconds, opener=self._opener)
        self.facts = facts
        return examine(facts)

    def exit_status(self, findings: Sequence[Finding]) -> int:
        """0, or the status for the kind of the first failure."""
        return exit_status(findings)

    def repairs(self, findings: Sequence[Finding]) -> tuple[Repair, ...]:
        """The fixes that can be applied without harm."""
        return mend.repairs(findings)

    def described(self, repair: Repair) -> str:
        """What a repair does."""
        return mend.described(repair)

    async def apply(self, repair: Repair) -> str:
        """Apply one; the result is what went wrong, or nothing."""
        return await mend.apply(self._profile, repair, opener=self._opener)
