"""Where inputs are on this machine: in place, in a copy of their own, or at a path that the job has chosen."""

import hashlib
import os
import re
import shutil
from typing import Mapping, NamedTuple, Sequence

from towline.stager.problems import Problem

SHARED = ("lustre", "slurm", "file")
"""Schemes of paths: `lustre:///a` is `/a`, and `slurm://host/p` is `/host/p`, as TAO writes it."""
_WHERE = ("S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "HF_ENDPOINT")
"""Variables that make the same URI another thing."""
CONTROL = ".towline"


class Place(NamedTuple):
    """Where a copy is, or will be.

    Attributes:
        data: the file or directory.
        control: a directory on the same file system for what is said and half-made of it.
        is_shared: whether other jobs use it, too, and may have put it there by other means.
    """

    data: str
    control: str
    is_shared: bool = False

    @property
    def note(self) -> str:
        """The file that is there once the data is to be published, whole."""
        return os.path.join(self.control, "whole")

    def is_there(self) -> bool:
        """Whether the copy is there, whole."""
        if not self.is_shared:
            return os.path.exists(self.note) and os.path.exists(self.data)
        return os.path.isfile(self.data) or (os.path.isdir(self.data) and bool(os.listdir(self.data)))


def as_path(text: str) -> str:
    """A path of this machine for what means one; anything else as it is."""
    scheme, separator, rest = text.partition("://")
    return "/" + rest.lstrip("/") if separator and scheme in SHARED else text


def in_place(uri: str) -> str:
    """The path that is used as it is; empty for what has to be brought.

    Raises:
        Problem: there is nothing.
    """
    path = as_path(uri)
    if "://" in path:
        return ""
    if path.startswith("/") and not os.path.lexists(path):  # a relative one may be the name of anything
        words = "{}: there is no {} in this container on {}; is it mounted?"
        raise Problem("not-found", words.format(uri, path, os.uname().nodename))
    return path


def name_of(uri: str) -> str:
    """The last part of a URI, as a file name."""
    path = uri.partition("://")[2].partition("?")[0].rstrip("/")
    name = re.sub(r"[^A-Za-z0-9_.+=@,-]", "_", path.rpartition("/")[2])
    return name if name.strip(".") and name != CONTROL else "data"


def own_place(uri: str, folder: str, env: Mapping[str, str], more: Sequence[str]) -> Place:
    """A copy below a folder; one for each URI, endpoint, and what `more` says of it."""
    name = name_of(uri)
    told = "\n".join([uri, *(env.get(each, "") for each in _WHERE), *more])
    home = os.path.join(folder, "{}+{}".format(name[:80], hashlib.sha256(told.encode()).hexdigest()[:10]))
    return Place(os.path.join(home, name), os.path.join(home, CONTROL))


def mounted_place(uri: str, mount: str) -> Place:
    """Where a mount keeps an object for all jobs: `s3://BUCKET/KEY` as `BUCKET/KEY`.

    Raises:
        Problem: the key could not be a path below it.
    """
    parts = [part for part in uri.partition("://")[2].rstrip("/").split("/")]
    if any(part in ("", ".", "..", CONTROL) for part in parts):
        raise Problem("names", "{} cannot be a path below {}".format(uri, mount))
    control = os.path.join(mount, CONTROL, hashlib.sha256("/".join(parts).encode()).hexdigest()[:20])
    return Place(os.path.join(mount, *parts), control, is_shared=True)


def show_at(target: str, path: str) -> None:
    """Have what is at `path` at `target`, too; other processes of this container may do the same.

    Raises:
        Problem: something else is there, or it cannot be made.
    """
    if os.path.realpath(target) == os.path.realpath(path):
        return
    try:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        if _is_empty(target):
            try:
                os.rmdir(target)
            except OSError:  # something is mounted there, or it is gone already
                pass
        if _is_empty(target) and os.path.isdir(path):
            for name in os.listdir(path):
                _link(os.path.join(path, name), os.path.join(target, name))
        else:
            _link(path, target)
    except OSError as error:
        raise Problem("other", "{} cannot be shown at {}: {}".format(path, target, error.strerror or error)) from None


def _is_empty(folder: str) -> bool:
    return os.path.isdir(folder) and not os.path.islink(folder) and not os.listdir(folder)


def _link(path: str, target: str) -> None:
    try:
        os.symlink(path, target)
    except FileExistsError:
        if os.path.realpath(target) == os.path.realpath(path) or _is_same_copy(path, target):
            return
        if os.path.exists(target) or not os.path.islink(target):
            words = "{} is there already and is not {}; name another path"
            raise Problem("names", words.format(target, path)) from None
        fresh = "{}.towline-{}".format(target, os.getpid())  # it led to a copy that is no more
        os.symlink(path, fresh)
        os.replace(fresh, target)


def _is_same_copy(path: str, target: str) -> bool:
    """Whether a link leads to another job's copy of the same URI: the name of its home has the hash."""
    other = os.readlink(target) if os.path.islink(target) else ""
    return os.path.exists(other) and "+" in other and other.split("/")[-2:] == path.split("/")[-2:]


def publish(source: str, target: str) -> None:
    """Give what is whole its name; what somebody else has given that name meanwhile stays.

    Raises:
        OSError: it cannot be renamed.
    """
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(target) and not os.listdir(target):
        os.rmdir(target)
    try:
        os.rename(source, target)
    except OSError:
        if not os.path.exists(target):
            raise
        shutil.rmtree(source, ignore_errors=True)
