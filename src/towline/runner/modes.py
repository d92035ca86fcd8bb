"""The three ways a job is run: with a configuration file, with arguments, or as it is."""

import json
import os
import re
import shlex
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

from towline.runner import command
from towline.runner.config_files import text_of
from towline.runner.inputs import Wanted, fetch
from towline.runner.keys import get, items, leaves, put, table
from towline.runner.peers import Peers, agreed, peers_of, write
from towline.runner.places import as_path
from towline.runner.results import (
    Output,
    Root,
    is_remote,
    place_outputs,
    root_of,
    take_away,
)
from towline.runner.resume import resume
from towline.runner.telling import say
from towline.stager.problems import Problem, of_system

CONFIG_PATH = "{config_path}"
"""What a command has where the path of its configuration belongs; nothing else in it is replaced."""
_EVERYWHERE = ("ngc", "hf_model", "hf_dataset")
"""Schemes that are brought wherever they stand in a specification."""
_ONE_FILE = ("ngc", "hf_model")
"""Those of models, of which trainers want the file of weights when there is one."""
_SAFE = re.compile(r"[A-Za-z0-9_./@%+=:,-]+")
"""What means itself in every kind of quotes."""


class Description(NamedTuple):
    """What `build_entrypoint` was given; see there.

    Attributes:
        mode: `config`, `args` or `passthrough`.
        payload: the specification or the arguments.
        inputs: key → what is declared of it; in `passthrough`, path → URI.
        outputs: key → what is declared of it; in `passthrough`, path → URI where it is taken, or nothing.
    """

    mode: str
    command: str
    payload: Dict[str, Any]
    inputs: Dict[str, Any]
    outputs: Dict[str, Any]
    config_format: str = "toml"
    upload_excludes: Sequence[str] = ()
    mount_path: str = ""
    flags: Sequence[str] = ()
    job_id: str = ""


def run(job: Description, scratch: str, env: Mapping[str, str]) -> int:
    """Bring the inputs, run the command, take the outputs away.

    Args:
        job: what to do.
        scratch: a private directory of this process.
        env: the environment.

    Returns:
        The command's exit code; 1 when it was 0 and an output could not be taken away.

    Raises:
        Problem, ValueError, OSError: the command was not started.
    """
    root, peers = root_of(env, job.job_id), peers_of(env)
    needed = list(wanted(job))
    local = fetch(needed, root.beside, env, job.mount_path, say) if needed else {}
    if job.mode == "passthrough":
        outputs = _as_they_are(job, root)
        text = job.command
    else:
        for key, path in local.items():
            put(job.payload, key, path)
        _name_paths(job.payload)
        outputs = place_outputs(job.payload, job.outputs, root, job.mount_path)
        text = with_arguments(job) if job.mode == "args" else _with_config(job, outputs, root, peers, scratch, env)
    code = command.run(text, scratch)
    if code:
        say("the command ended with exit code {}".format(code))
    try:
        done = take_away(outputs, root, peers, job.upload_excludes, bool(code))
    except OSError as error:
        say("the outputs could not be taken away: {}".format(of_system(error).text))
        done = False
    return code or (0 if done else 1)


# --- Inputs ---


def wanted(job: Description) -> Iterator[Wanted]:
    """The inputs that have to be there before the command starts."""
    if job.mode == "passthrough":
        yield from (Wanted(path, uri, target=path) for path, uri in job.inputs.items() if uri)
        return
    named: Set[str] = set()
    for key, declared in job.inputs.items():
        settings = table(declared) or {}
        for each, uri in _values_at(job.payload, key):
            named.add(each)
            yield Wanted(each, uri, settings=settings, is_model=_scheme(uri) in _ONE_FILE)
    for key, value in leaves(job.payload):
        if key not in named and isinstance(value, str) and _scheme(value) in _EVERYWHERE:
            yield Wanted(key, value, is_model=_scheme(value) in _ONE_FILE)


def _scheme(uri: str) -> str:
    scheme, mark, _ = uri.partition("://")
    return scheme if mark else ""


def _values_at(payload: Mapping[str, Any], key: str) -> Iterator[Tuple[str, str]]:
    """The URIs and absolute paths that a key has: one, or those of its list."""
    value = get(payload, key)
    for number, each in enumerate(items(value) or []):
        if _is_place(each):
            yield "{}[{}]".format(key, number), each
    if _is_place(value):
        yield key, value


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and ("://" in value or value.startswith("/"))


def _name_paths(payload: Dict[str, Any]) -> None:
    """`lustre://` and `slurm://` become paths wherever they stand: no trainer knows them."""
    for key, value in list(leaves(payload)):
        if isinstance(value, str) and as_path(value) != value and not is_remote(value):
            put(payload, key, as_path(value))


# --- Modes ---


def _as_they_are(job: Description, root: Root) -> List[Output]:
    """The paths that a command writes to by itself."""
    outputs: List[Output] = []
    for path, target in job.outputs.items():
        name = os.path.basename(path.rstrip("/")) or "root"
        away = "{}/{}".format(root.target, name) if root.kind == "s3" else ""
        outputs.append(Output(name, path, target if isinstance(target, str) and target else away))
    return outputs


def with_arguments(job: Description) -> str:
    """The command with the arguments at its end, each one word for the shell."""
    words: List[str] = []
    for name, value in job.payload.items():
        words += [] if value is None else ["--" + name, word_of(value)]
    words += ["--" + name for name in job.flags]
    return " ".join([job.command.rstrip(), *map(shlex.quote, words)])


def word_of(value: Any) -> str:
    """A value as an argument: lists and tables as JSON, which argument parsers read numbers of as they are."""
    if isinstance(value, (list, dict)):
        return json.dumps(value)
    return value if isinstance(value, str) else str(value)


def _with_config(
    job: Description, outputs: Sequence[Output], root: Root, peers: Peers, scratch: str, env: Mapping[str, str]
) -> str:
    """The command with the path of its configuration, which is written."""
    if CONFIG_PATH not in job.command:
        say("the command does not say {}, and so does not know where its configuration is".format(CONFIG_PATH))
    for key, path in resume(job.payload, [each.path for each in outputs], env).items():
        say("going on from {}: {}".format(key, path))
        put(job.payload, key, path)
    name = "spec.{}".format(job.config_format)
    text = text_of(job.payload, job.config_format)
    if root.kind == "mount":
        text = agreed(root.beside, peers, name, text)
    path = os.path.join(root.folder, name)
    write(path, text)
    return job.command.replace(CONFIG_PATH, _safe(path, scratch))


def _safe(path: str, scratch: str) -> str:
    """A path to the same file that means itself in every kind of quotes."""
    if _SAFE.fullmatch(path):
        return path
    link = os.path.join(scratch, os.path.basename(path))
    os.symlink(path, link)
    if not _SAFE.fullmatch(link):
        raise Problem("names", "{}: a command cannot name this path safely; set TMPDIR to a plain one".format(path))
    return link
