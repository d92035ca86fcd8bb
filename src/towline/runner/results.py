"""Where a job's outputs go: the directory that it writes to, and where that is taken."""

import os
import re
import uuid
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from towline.runner.keys import get, put, table
from towline.runner.peers import Peers, takes_away
from towline.runner.places import as_path
from towline.runner.telling import say
from towline.runner.uploads import upload
from towline.stager.problems import Problem, of_system

TAKEN = ("s3", "gs")
"""Schemes of places that outputs can be taken to."""


class Root(NamedTuple):
    """Where outputs go that name no place of their own.

    Attributes:
        kind: `mount` when they stay where they are written, `s3` when they are taken there, `ephemeral` when they end
            with the container.
        target: the path or URI.
        folder: directory of this machine that the job works in.
        beside: directory for what is no result: inputs, and what the nodes say to each other.
    """

    kind: str
    target: str
    folder: str
    beside: str


class Output(NamedTuple):
    """One output.

    Attributes:
        name: what it is called below the root.
        path: where the command writes it.
        target: where it is to be taken in any case; empty for one that may stay.
    """

    name: str
    path: str
    target: str = ""


def root_of(env: Mapping[str, str], job_id: str) -> Root:
    """Where outputs go, by what the platform says.

    Args:
        env: `TAO_RESULTS_ROOT` is a directory that outlives the container, `S3_BUCKET_NAME` a bucket, `TAO_JOB_ID` the
            job. Where a container does not see the former, Towline's own `TOWLINE_RESULTS_DIR` is the same place.
        job_id: the job where the environment names none.

    Raises:
        Problem: the directory cannot be made.
    """
    job = env.get("TAO_JOB_ID") or job_id or str(uuid.uuid4())
    above, own = env.get("TAO_RESULTS_ROOT", "").rstrip("/"), env.get("TOWLINE_RESULTS_DIR", "")
    bucket = env.get("S3_BUCKET_NAME", "").strip()
    if above or own:
        place = "{}/{}".format(above, job) if above else own
        if own and not os.path.isdir(place):
            place = own
        root = Root("mount", place, place, "{}/inputs".format(env.get("TOWLINE_JOB_DIR") or place))
    elif bucket:
        root = _of_container("s3", "s3://{}/results/{}".format(bucket, job), job)
    else:
        root = _of_container("ephemeral", "", job)
    try:
        os.makedirs(root.folder, exist_ok=True)
    except OSError as error:
        raise Problem(
            "other",
            "{}: the directory of the results cannot be made ({}); set TAO_RESULTS_ROOT to one that can".format(
                root.folder, error.strerror
            ),
        ) from None
    return root


def _of_container(kind: str, target: str, job: str) -> Root:
    """The directory that TAO has in a container whose platform gives none."""
    folder = "/results/{}".format(job)
    return Root(kind, target, folder, folder + "/inputs")


def is_remote(text: Any) -> bool:
    """Whether a value is a URI of data that lies elsewhere."""
    return isinstance(text, str) and "://" in as_path(text)


def name_of(key: str) -> str:
    """What the output of a key is called below the root."""
    return re.sub(r"[^A-Za-z0-9_]", "_", key)


def place_outputs(values: Dict[str, Any], outputs: Mapping[str, Any], root: Root, mount_path: str) -> List[Output]:
    """Have every output's key name a path that the command can write to, and make the directories.

    A key that names no place (`results_dir: "output"`, or nothing) gets one of its own below the root.

    Args:
        values: the specification or the arguments, which are changed.
        outputs: key → `{"type": "folder" or "file"}`.
        root: where they go.
        mount_path: directory that has `s3://BUCKET/KEY` as `BUCKET/KEY`; empty for none.
    """
    placed: List[Output] = []
    for key, settings in outputs.items():
        name = name_of(key)
        output = _placed(name, get(values, key), root, mount_path)
        put(values, key, output.path)
        is_file = (table(settings) or {}).get("type") == "file"
        os.makedirs(os.path.dirname(output.path) if is_file else output.path, exist_ok=True)
        placed.append(output)
    return placed


def _placed(name: str, value: Any, root: Root, mount_path: str) -> Output:
    if isinstance(value, str) and as_path(value).startswith("/"):
        return Output(name, as_path(value))
    own = "{}/{}".format(root.folder, name)
    if not is_remote(value):
        return Output(name, own, "{}/{}".format(root.target, name) if root.kind == "s3" else "")
    return Output(name, os.path.join(mount_path, value.partition("://")[2]) if mount_path else own, value)


def take_away(outputs: Sequence[Output], root: Root, peers: Peers, excludes: Sequence[str], failed: bool) -> bool:
    """Take the outputs to where they are kept, those of a command that failed, too: there may be checkpoints.

    What lies on the container's own disk and would end with it goes below the root. Each of several nodes has such of
    its own; those of the first have the names, those of the others are in `node-1` and so on. What the nodes share is
    taken by one of them.

    Returns:
        Whether all are where they are kept.
    """
    there = [each for each in outputs if os.path.exists(each.path)]
    for each in outputs:
        if each not in there:
            say("the output {} is not there".format(each.path))
    lost = [each for each in there if _is_lost(each.path, root)]
    shared = [each for each in there if each.target and each not in lost]
    mine = takes_away(root.beside, peers, failed) if shared else False
    done = [_taken(each.path, each.target, excludes) for each in shared if mine]
    for each in lost:
        target = each.target or (root.target and "{}/{}".format(root.target, each.name))
        if target:
            done.append(_taken(each.path, _of_node(target, peers, os.path.isdir(each.path)), excludes))
        else:
            say("{} ends with this container: {}".format(each.path, _NOWHERE))
    return all(done)


_NOWHERE = "neither TAO_RESULTS_ROOT nor S3_BUCKET_NAME says where results are kept"


def _is_lost(path: str, root: Root) -> bool:
    """Whether a path is on a disk of the container's own, or on that of this machine's temporary files."""
    if root.kind == "mount" and os.path.realpath(path).startswith(os.path.realpath(root.folder) + "/"):
        return False
    own = {_device(each) for each in ("/", "/tmp", "/dev/shm")} - {-1}  # noqa: S108
    return _device(path if os.path.isdir(path) else os.path.dirname(path)) in own


def _of_node(target: str, peers: Peers, is_folder: bool) -> str:
    if not peers.number:
        return target
    above, _, name = target.rstrip("/").rpartition("/")
    node = "node-{}".format(peers.number)
    return "{}/{}/{}".format(above, name, node) if is_folder else "{}/{}/{}".format(above, node, name)


def _taken(path: str, target: str, excludes: Sequence[str]) -> bool:
    try:
        files, size = upload(path, target, excludes, os.environ)
    except OSError as error:
        problem = of_system(error)
    except Problem as error:
        problem = error
    else:
        say("{} went to {}: {} files, {} bytes".format(path, target, files, size))
        return True
    say("{} could not be taken to {}: {}".format(path, target, problem.text))
    return False


def _device(path: str) -> int:
    try:
        return os.stat(path).st_dev
    except OSError:
        return -1
