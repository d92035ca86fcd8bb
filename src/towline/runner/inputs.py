"""Inputs of a job: from where its specification has them to paths of this machine, each brought once."""

from types import MappingProxyType
from typing import Any, Dict, Mapping, NamedTuple, Sequence

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Wanted(NamedTuple):
    """One input.

    Attributes:
        key: where it stands: a dotted key (`data.train[0].images`), the name of an argument, or a path.
        uri: where its data is: a URI, or a path that is used as it is.
        target: the path where it has to be; empty for a place of its own below the folder.
        settings: what the job declares of it: `selective`, `extract_to_parent`, `container_path`.
        is_model: whether a directory with one model file stands for that file, as keys of pretrained models mean it.
    """

    key: str
    uri: str
    target: str = ""
    settings: Mapping[str, Any] = _NOTHING
    is_model: bool = False


def fetch(wanted: Sequence[Wanted], folder: str, env: Mapping[str, str], mount_path: str = "") -> Dict[str, str]:
    """Have every input on this machine's file systems.

    Those that are there (plain paths, `lustre://`, `slurm://`, `file://`) are used in place. The others are brought
    once on each file system, however many processes of however many nodes ask; the others wait for it.

    Args:
        wanted: the inputs.
        folder: where they come to; nodes of one job have the same where they share it.
        env: the environment: keys, endpoints, and what names this process.
        mount_path: directory in which `s3://BUCKET/KEY` is kept as `BUCKET/KEY` for all jobs; empty for none.

    Returns:
        Key → path.

    Raises:
        Problem: one cannot be had.
    """
    raise NotImplementedError
