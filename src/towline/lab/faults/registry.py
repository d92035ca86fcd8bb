"""Every fault there is, in the order in which they are undone: Slurm itself first, since it has to take nodes back."""

from __future__ import annotations

from towline.lab.errors import LabError
from towline.lab.faults import accounts, clock, gpus, logins, nodes, registries, slurm, storage
from towline.lab.faults.fault import Fault

_ALL = (
    *storage.FAULTS,
    *slurm.FAULTS,
    *registries.FAULTS,
    *logins.FAULTS,
    *accounts.FAULTS,
    *clock.FAULTS,
    *gpus.FAULTS,
    *nodes.FAULTS,
)
FAULTS: dict[str, Fault] = {fault.name: fault for fault in _ALL}


def find(name: str) -> Fault:
    """The fault of that name.

    Raises:
        LabError: there is none; the message lists those there are.
    """
    if name not in FAULTS:
        raise LabError(f"There is no fault {name!r}.", fix=f"There are: {', '.join(sorted(FAULTS))}.")
    return FAULTS[name]
