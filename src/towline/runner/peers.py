"""The other processes of the same job: which of several nodes decides, and which takes the outputs away."""

import os
import re
from typing import Mapping, NamedTuple


class Peers(NamedTuple):
    """This process among those that run the same command.

    Attributes:
        number: from 0 on.
        total: how many there are.
        attempt: a name of this start of the job, the same for all of them; empty where nobody tells it.
    """

    number: int = 0
    total: int = 1
    attempt: str = ""


def peers_of(env: Mapping[str, str]) -> Peers:
    """What Slurm tells of them. TAO's convention takes the number of the task away, but not that of the node."""
    if env.get("SLURM_PROCID"):
        number, count = env["SLURM_PROCID"], env.get("SLURM_STEP_NUM_TASKS") or env.get("SLURM_NTASKS", "")
    else:
        number, count = env.get("SLURM_NODEID", ""), env.get("SLURM_STEP_NUM_NODES") or env.get("WORLD_SIZE", "")
    told = [env.get(name, "") for name in ("TOWLINE_ATTEMPT", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID")]
    attempt = re.sub(r"[^A-Za-z0-9_.-]", "-", "-".join(filter(None, told)))
    return Peers(_number(number, 0), max(1, _number(count, 1)), attempt)


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() else otherwise


def agreed(folder: str, peers: Peers, name: str, text: str) -> str:
    """The text of the first of all processes that has one.

    They may not have the same: an earlier one may have made a checkpoint already when a later one looks for some.

    Args:
        folder: a directory that all of them share.
        peers: this process among them.
        name: what the text is of.
        text: this process's.
    """
    if peers.total == 1 or not peers.attempt:
        return text
    place = os.path.join(folder, ".towline", peers.attempt)
    os.makedirs(place, exist_ok=True)
    own, first = (os.path.join(place, "{}{}".format(name, end)) for end in (".{}".format(peers.number), ""))
    write(own, text)
    try:
        os.link(own, first)
    except FileExistsError:
        with open(first, encoding="utf-8") as file:
            return file.read()
    finally:
        os.unlink(own)
    return text


def write(path: str, text: str) -> None:
    """A file, whole or not there."""
    fresh = "{}.{}.{}".format(path, os.uname().nodename, os.getpid())
    with open(fresh, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(fresh, path)


def takes_away(folder: str, peers: Peers, failed: bool) -> bool:
    """Whether this process, whose command has just ended, takes away what all of them share.

    That is the last one whose command ends, for it has everything; or the first that failed, for Slurm may end the
    others before they come to it. Each takes the next free place in a row: listings of network file systems may be old,
    but making a directory is decided in one place.
    """
    if peers.total == 1 or not peers.attempt:
        return True
    place = os.path.join(folder, ".towline", peers.attempt)
    os.makedirs(place, exist_ok=True)
    last = not any(_made(os.path.join(place, "ended-{}".format(number))) for number in range(peers.total - 1))
    return (failed or last) and _made(os.path.join(place, "taken"))


def _made(path: str) -> bool:
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    return True
