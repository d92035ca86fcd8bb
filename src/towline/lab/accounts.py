"""The system accounts that the distribution's packages make."""

from __future__ import annotations

import pwd

from towline.lab.errors import LabError


def system_user(name: str) -> tuple[int, int]:
    """The uid and gid of a package's account.

    Raises:
        LabError: this machine has none of that name.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        raise LabError(
            f"This machine has no account {name!r}, which a package of the lab makes.",
            fix="Reinstall that package (for slurm: slurm-wlm-basic-plugins or slurmctld), or add the account.",
        ) from error
    return entry.pw_uid, entry.pw_gid
