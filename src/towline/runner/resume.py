"""Going on where an earlier start of the same job stopped."""

from typing import Any, Dict, Mapping, Sequence


def resume(specs: Mapping[str, Any], folders: Sequence[str], env: Mapping[str, str]) -> Dict[str, str]:
    """Which keys of a specification should name which checkpoint, so that the job goes on.

    Only keys `resume_training_checkpoint_path` that are there and empty count, in lists, too.

    Args:
        specs: the specification, with local paths.
        folders: directories of this job's outputs.
        env: the environment; `TAO_AUTO_RESUME=0` switches it off.

    Returns:
        Dotted key → path of the newest whole checkpoint; empty when there is none, or nothing to set.
    """
    raise NotImplementedError
