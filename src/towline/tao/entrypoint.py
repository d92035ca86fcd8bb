"""What `build_entrypoint` was asked for, checked: everything that can be known to be wrong before a job is sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from towline.models.parts import REMOTE
from towline.runner.config_files import text_of
from towline.runner.keys import get, items, leaves, put, steps_of
from towline.runner.modes import CONFIG_PATH, Description, word_of
from towline.runner.places import as_path
from towline.runner.results import TAKEN, name_of
from towline.tao.spec_serialization import normalize_data, normalize_specs

FORMATS = ("toml", "yaml", "json")
MAX_WORD = 128 << 10
"""Bytes from which on Linux takes a text for no argument (execve(2), MAX_ARG_STRLEN)."""
_ARGUMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Asked:
    """The arguments of `towline.tao.script_runner.build_entrypoint`; see there."""

    command: str
    inputs: Mapping[str, Any] | Sequence[str] | None = None
    outputs: Mapping[str, Any] | Sequence[str] | None = None
    specs: Mapping[str, Any] | None = None
    args: Mapping[str, Any] | None = None
    config_format: str = "toml"
    upload_excludes: Sequence[str] | None = None
    mount_path: str | None = None
    flags: Sequence[str] | None = None
    job_id: str | None = None


def described(asked: Asked) -> Description:
    """What the runner is to do.

    Raises:
        TypeError: a value is of a kind that cannot be written down.
        ValueError: something cannot be right.
    """
    for name in ("command", "config_format"):
        if not isinstance(value := getattr(asked, name), str):
            raise TypeError(f"{name} must be text, not {value!r}")
    if asked.specs is not None and asked.args is not None:
        raise ValueError("give either specs or args, not both: a job has a configuration file or arguments")
    mode = "config" if asked.specs is not None else "args" if asked.args is not None else "passthrough"
    job = Description(
        mode=mode,
        command=asked.command,
        payload=normalize_specs(asked.specs) if mode == "config" else normalize_data(asked.args or {}, root="args"),
        inputs=_declared(asked.inputs, "inputs"),
        outputs=_declared(asked.outputs, "outputs"),
        config_format=asked.config_format.lower(),
        upload_excludes=_texts(asked.upload_excludes, "upload_excludes"),
        mount_path=asked.mount_path or "",
        flags=[flag.lstrip("-") for flag in _texts(asked.flags, "flags")],
        job_id=asked.job_id or "",
    )
    _check_command(job)
    _check_rest(job)
    {"config": _check_specs, "args": _check_args, "passthrough": _check_paths}[mode](job)
    return job


def _declared(given: object, what: str) -> dict[str, Any]:
    """Keys and what is declared of them, whether given as a list or as a table."""
    plain = normalize_data({} if given is None else given, root=what)
    if isinstance(plain, list) and all(isinstance(each, str) for each in cast("list[Any]", plain)):
        return {str(each): {} for each in cast("list[Any]", plain)}
    if not isinstance(plain, dict):
        raise TypeError(f"{what} must be a table or a list of texts, not {given!r}")
    return cast("dict[str, Any]", plain)


def _texts(given: Sequence[str] | None, what: str) -> list[str]:
    plain = normalize_data([] if given is None else given, root=what)
    if not isinstance(plain, list) or not all(isinstance(each, str) for each in cast("list[Any]", plain)):
        raise TypeError(f"{what} must be a list of texts, not {given!r}")
    return cast("list[str]", plain)


def _check_command(job: Description) -> None:
    if not job.command.strip():
        raise ValueError("the command is empty; give the shell text that shall run in the container")
    if "\0" in job.command:
        raise ValueError("the command has a NUL, which no shell can read")
    if job.mode != "config" and CONFIG_PATH in job.command:
        raise ValueError(f"the command says {CONFIG_PATH}, and there is no configuration; give specs")


def _check_rest(job: Description) -> None:
    if job.flags and job.mode != "args":
        raise ValueError("flags are added to arguments; give args, or write them into the command")
    for name in job.flags:
        _check_argument(name, "flags")
    if job.mount_path and not job.mount_path.startswith("/"):
        raise ValueError(f"mount_path: {job.mount_path!r} is no absolute path")
    if job.job_id and not _ID.fullmatch(job.job_id):
        raise ValueError(f"job_id: {job.job_id!r} is no name for a directory; use letters, digits, '_', '.' and '-'")


# --- With a configuration, or with arguments ---


def _check_specs(job: Description) -> None:
    if job.config_format not in FORMATS:
        raise ValueError(f"config_format: {job.config_format!r} is none; there are {', '.join(FORMATS)}")
    for name in job.payload:
        if "." in name:
            above, _, below = name.partition(".")
            raise ValueError(
                f"specs: the key {name!r} is written with a dot; write it as a table in a table: "
                f"{{{above!r}: {{{below!r}: …}}}}"
            )
    _check_keys(job)
    # Keys of outputs get their paths in the job; what is written there is no matter before.
    probe = normalize_specs(job.payload)
    for key in job.outputs:
        put(probe, key, "/path")
    try:
        text_of(probe, job.config_format)
    except ValueError as error:
        kind = TypeError if "None" in str(error) else ValueError
        raise kind(f"specs: {error}") from None


def _check_args(job: Description) -> None:
    for name, value in job.payload.items():
        _check_argument(name, "args")
        if len(word_of(value).encode("utf-8", "surrogatepass")) >= MAX_WORD:
            raise ValueError(f"args: {name} is longer than 128 KiB, which Linux takes for no argument; use specs")
    _check_keys(job)


def _check_argument(name: str, what: str) -> None:
    if not _ARGUMENT.fullmatch(name):
        raise ValueError(f"{what}: {name!r} is no name of an argument; it is written as --NAME")


def _check_keys(job: Description) -> None:
    """The keys of inputs and outputs, and where what stands there comes from or goes to."""
    for key in (*job.inputs, *job.outputs):
        steps_of(key)
    for key, declared in job.inputs.items():
        _check_selective(key, declared, job.inputs)
        value = get(job.payload, key)
        for each in items(value) or [value]:
            _check_brought(each, f"inputs: {key}")
    _check_names(job.outputs, name_of)
    for key in job.outputs:
        _check_taken(get(job.payload, key), f"outputs: {key}")
    for key, value in leaves(job.payload):
        if key not in job.inputs and isinstance(value, str) and value.startswith("ngc://"):
            _check_brought(value, key)


def _check_selective(key: str, declared: Any, inputs: Mapping[str, Any]) -> None:
    selective = declared.get("selective") if isinstance(declared, dict) else None  # pyright: ignore
    if not isinstance(selective, dict):
        return
    named = cast("dict[str, Any]", selective).get("annotation")
    if named not in inputs:
        raise ValueError(f"inputs: {key} is brought by the annotations of {named!r}, which is no input")


# --- As it is ---


def _check_paths(job: Description) -> None:
    for path, uri in job.inputs.items():
        if not path.startswith("/"):
            raise ValueError(f"inputs: {path!r} is no absolute path; without specs or args inputs are paths and URIs")
        if not isinstance(uri, str):
            raise TypeError(f"inputs: {path} must have a URI, not {uri!r}")
        _check_brought(uri, f"inputs: {path}")
    for path, uri in job.outputs.items():
        if not path.startswith("/"):
            raise ValueError(f"outputs: {path!r} is no absolute path of the container")
        _check_taken(uri, f"outputs: {path}")
    _check_names(job.outputs, _last_part)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _check_names(keys: Iterable[str], name: Callable[[str], str]) -> None:
    names: dict[str, str] = {}
    for key in keys:
        if names.setdefault(name(key), key) != key:
            raise ValueError(f"outputs: {names[name(key)]} and {key} would both be called {name(key)}")


def _check_brought(value: object, place: str) -> None:
    scheme, mark, _ = as_path(value).partition("://") if isinstance(value, str) else ("", "", "")
    if mark and scheme not in REMOTE:
        raise ValueError(f"{place}: nothing is known to bring {value}; there are {', '.join(REMOTE)} and lustre")


def _check_taken(value: object, place: str) -> None:
    scheme, mark, _ = as_path(value).partition("://") if isinstance(value, str) else ("", "", "")
    if mark and scheme not in TAKEN:
        raise ValueError(f"{place}: nothing can be taken to {value}; there are {', '.join(TAKEN)} and lustre")
