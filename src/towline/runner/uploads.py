"""Outputs of a job: from this machine to where they are kept."""

from typing import Mapping, Sequence, Tuple

from towline.stager.send import send


def upload(source: str, target: str, excludes: Sequence[str], env: Mapping[str, str]) -> Tuple[int, int]:
    """Take a file, or what a directory holds, to a URI or to another directory.

    Files go many at a time, large ones in parts; what is there already and equal stays. Links are not followed: nobody
    but the job has made them.

    Args:
        source: the file or directory.
        target: where it goes: `s3://BUCKET/PREFIX`, `gs://…`, or an absolute path.
        excludes: patterns of paths below the directory (fnmatch) that stay.
        env: the environment with the keys.

    Returns:
        How many files and bytes.

    Raises:
        Problem: something could not be taken there; all else was.
    """
    return send(source, target, env, excludes)
