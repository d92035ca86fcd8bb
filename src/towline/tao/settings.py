"""Which cluster TAO's variables mean."""

from __future__ import annotations

import os
from collections.abc import Mapping

from towline.config.files import load_profiles, resolve
from towline.config.profile import ClusterProfile
from towline.config.tao import NAME, read_tao
from towline.tao.models import CredentialError

_SHORTEST = 0.5
"""Seconds between two looks at least, as profiles have it."""


def tao_profile(poll_interval: float | None = None, env: Mapping[str, str] | None = None) -> ClusterProfile:
    """The cluster of `SLURM_USER` and its kin; else the profile `tao`, else your own as for any other command.

    A profile of your own keeps its numbers; its jobs get TAO's variables.

    Args:
        poll_interval: seconds between two looks at the queue; the profile's when not given.
        env: the environment; this process's when not given.

    Raises:
        CredentialError: no cluster is named; the error says which variables are missing.
        ConfigError: a variable or a setting is wrong.
    """
    env = os.environ if env is None else env
    variables = read_tao(env)
    known = {profile.name for profile in load_profiles(env=env)}
    if not variables.complete and not known:
        raise _missing(variables.variables)
    profile = resolve(NAME if variables.complete or NAME in known else None, env=env).profile
    interval = profile.poll_interval if poll_interval is None else max(_SHORTEST, float(poll_interval))
    return profile.model_copy(update={"preset": NAME, "poll_interval": interval})


def _missing(found: Mapping[str, str]) -> CredentialError:
    groups = (("SLURM_USER", "SSH_USER"), ("SLURM_HOSTNAME", "SSH_HOST"))
    missing = [names[0] for names in groups if not any(name in found for name in names)]
    return CredentialError(
        f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set",
        why="They say who logs in to the cluster, and where.",
        fix=f"Set {' and '.join(missing)} in the environment or in ~/.config/tao/.env, or describe the cluster "
        "with `towline setup`.",
    )
