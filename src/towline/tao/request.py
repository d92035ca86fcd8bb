"""From the arguments of `SlurmSDK.create_job` to a job's description. Pure: nothing is sent here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from towline.models.errors import SpecError
from towline.models.secrets import Secrets
from towline.models.spec import JobSpec

NAME = "tao-job"
"""How the names of TAO's jobs begin in Slurm."""

FORWARDED = {
    "ACCESS_KEY": "AWS_ACCESS_KEY_ID",
    "SECRET_KEY": "AWS_SECRET_ACCESS_KEY",
    "HF_TOKEN": "HF_TOKEN",
    "NGC_KEY": "NGC_KEY",
}
"""Credentials that every job gets when this process has them: their names here and in the job."""

_SECRET = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(?:_ID)?$", re.IGNORECASE)

_SOURCES, _TARGETS = ("from_path", "source", "src"), ("mount_path", "path", "target")
"""What TAO's SDK calls the two ends of a mount, in the order in which they count."""
_LONGEST = 300
"""Characters of a value that an error repeats."""

T = TypeVar("T")
Mounts = Sequence[str | Mapping[str, str]]


@dataclass(frozen=True)
class Request:
    """What a job shall be.

    Attributes:
        spec: its description, without secrets.
        secrets: their values, by name.
        folders: directories below the results that must be there when it begins.
    """

    spec: JobSpec
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    folders: tuple[str, ...] = ()

    @property
    def values(self) -> Secrets:
        """The secrets as a submission takes them."""
        return self.secrets


@dataclass(frozen=True)
class Wish:
    """The arguments of `create_job`; see there."""

    image: str
    command: str
    gpu_count: int | None = 1
    num_nodes: int | None = 1
    env_vars: Mapping[str, object] | None = None
    partition: str | None = None
    account: str | None = None
    mounts: Mounts | str | None = None
    inputs: Mapping[str, str] | None = None
    outputs: Sequence[str] | Mapping[str, str] | None = None


def request_of(wish: Wish, results: str, env: Mapping[str, str]) -> Request:
    """What the arguments mean.

    Args:
        wish: the arguments.
        results: the directory on the cluster that the job's results go to.
        env: the environment of this process, whose credentials go with the job.

    Raises:
        SpecError: a value cannot be right; nothing was sent.
    """
    if not isinstance(wish.command, str) or not wish.command.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        what = "empty" if wish.command in (None, "") or str(wish.command).isspace() else "no text"
        raise SpecError(f"the command is {what}", fix="Give the shell text that shall run in the container.")
    public, secret = _environment(_table(wish.env_vars, "env_vars"), env)
    folders = _folders(wish.outputs or ())
    spec = JobSpec.build(
        name=NAME,
        image=wish.image,
        shell=wish.command,
        resources={"nodes": 1 if wish.num_nodes is None else wish.num_nodes, **_gpus(wish.gpu_count)},
        partition=wish.partition or (),
        account=wish.account or None,
        env={"CLOUD_METADATA": _cloud(env), **public} if _cloud(env) else public,
        secrets=tuple(secret),
        mounts=[*_mounts(wish.mounts), *_output_mounts(folders, results)],
        inputs=dict(_table(wish.inputs, "inputs")),
        outputs=_destinations(wish.outputs, folders),
    )
    return Request(spec, secret, tuple(filter(None, folders.values())))


def _gpus(count: int | None) -> dict[str, int]:
    """GPUs of each node; from a node's number on they are whole nodes, as the preset has it. 0 is a job of CPUs."""
    return {"gpus": 1} if count is None else {"gpus": count} if count else {}


def _table(given: Mapping[str, T] | None, what: str) -> Mapping[str, T]:
    """A table of texts; None is an empty one.

    Raises:
        SpecError: it is none.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):  # pyright: ignore
        raise SpecError(f"{what} must be a table with texts as its keys, not {given!r}"[:_LONGEST], fix="Give a dict.")
    return given


def _mounts(given: Mounts | str | None) -> list[str | Mapping[str, str]]:
    """The mounts in our words; TAO's SDK takes one text with commas, and tables with words of its own."""
    each = [part for part in given.split(",") if part] if isinstance(given, str) else list(given or ())
    return [_mount(one) if isinstance(one, Mapping) else one for one in each]


def _mount(given: Mapping[str, str]) -> Mapping[str, str]:
    words = {name: value for name, value in given.items() if name not in _SOURCES + _TARGETS}
    source = next((given[name] for name in _SOURCES if given.get(name)), "")
    target = next((given[name] for name in _TARGETS if given.get(name)), source)
    return {**words, **({"source": source} if source else {}), **({"target": target} if target else {})}


def _environment(given: Mapping[str, object], env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The public variables, and those whose values are secret."""
    texts = {name: str(value) for name, value in given.items() if value is not None}
    secret = {name: text for name, text in texts.items() if text and _SECRET.search(name)}
    for ours, theirs in FORWARDED.items():
        if (value := env.get(ours)) and theirs not in texts:
            secret[theirs] = value
    public = {name: text for name, text in texts.items() if name not in secret}
    for ours, theirs in (("S3_ENDPOINT_URL", "AWS_ENDPOINT_URL"), ("CLOUD_REGION", "AWS_DEFAULT_REGION")):
        if env.get(ours):
            public.setdefault(theirs, env[ours])
    return public, secret


def _cloud(env: Mapping[str, str]) -> str:
    """What a job may know of the bucket; its keys travel as secrets only."""
    bucket = env.get("S3_BUCKET_NAME", "")
    if not bucket:
        return ""
    about = {"cloud_region": env.get("CLOUD_REGION", ""), "endpoint_url": env.get("S3_ENDPOINT_URL", "")}
    return json.dumps({"aws": {bucket: about}}, separators=(",", ":"))


def _folders(outputs: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Path in the container → directory below the results; empty for the results themselves, if it is the only one."""
    paths = [outputs] if isinstance(outputs, str) else list(outputs)
    if not all(isinstance(path, str) for path in paths):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SpecError(
            f"outputs must be paths of the container, not {paths!r}"[:_LONGEST], fix="Give a list of texts."
        )
    if len(paths) == 1:
        return {paths[0]: ""}
    names = {path: re.sub(r"[^A-Za-z0-9_.-]+", "-", path.strip("/")).lstrip(".-") or "root" for path in paths}
    if len(set(names.values())) < len(names):
        raise SpecError("two outputs would have one name", why=", ".join(names))
    return names


def _output_mounts(folders: Mapping[str, str], results: str) -> list[str]:
    return [f"{results}/{name}".rstrip("/") + f":{path.rstrip('/') or '/'}" for path, name in folders.items()]


def _destinations(outputs: object, folders: Mapping[str, str]) -> dict[str, str]:
    """Where outputs go besides, of those that name such a place."""
    if not isinstance(outputs, Mapping):
        return {}
    return {folders[path] or ".": uri for path, uri in outputs.items() if uri}  # pyright: ignore
