"""`build_entrypoint`: one shell text that brings a job's inputs, runs its command and takes its outputs away.

from towline.tao.script_runner import build_entrypoint

entrypoint = build_entrypoint(command="train --config {config_path}", specs={"train": {"epochs": 3}})
sdk.create_job(image, entrypoint["command"], gpu_count=8)
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from towline.engine.data.program import program
from towline.launch.conventions import NEEDS_NGC, NEEDS_PYTHON
from towline.launch.quoting import quote
from towline.runner.modes import wanted
from towline.tao.entrypoint import Asked, described

_BOOT = """\
import base64, os, runpy, sys, tempfile, zlib
with os.fdopen(3) as told:
    program, job = (zlib.decompress(base64.b64decode(line)) for line in told.read().split())
try:
    folder = tempfile.mkdtemp(prefix="towline-")
    for name, text in (("runner", program), ("job.json", job)):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(text)
except OSError as error:
    sys.exit("towline: no temporary directory can be written (%s); set TMPDIR to one" % error)
sys.argv = [os.path.join(folder, name) for name in ("runner", "job.json")]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Starts the runner. Python runs it by itself (`-I`): a file `json.py` in the working directory is none of its own."""

_HEAD = """\
# Made by towline.tao.script_runner.build_entrypoint; the end holds a program and what it is to do.
for tl_python in python3 python ''; do
    if [ -z "$tl_python" ]; then
        echo 'towline: the command was not started: this image has no Python 3.8 or later (with zlib); use one that' \\
            'has, or run the command without build_entrypoint' >&2
        exit 127
    fi
    "$tl_python" -c 'import sys, zlib; sys.exit(sys.version_info < (3, 8))' >/dev/null 2>&1 </dev/null && break
done
"""


def build_entrypoint(
    *,
    command: str,
    inputs: Mapping[str, Any] | Sequence[str] | None = None,
    outputs: Mapping[str, Any] | Sequence[str] | None = None,
    specs: Mapping[str, Any] | None = None,
    args: Mapping[str, Any] | None = None,
    config_format: str = "toml",
    upload_excludes: Sequence[str] | None = None,
    mount_path: str | None = None,
    flags: Sequence[str] | None = None,
    job_id: str | None = None,
) -> dict[str, str]:
    """A command for `SlurmSDK.create_job`, or for any shell in a container with Python 3.8. See docs/tao.md.

    Args:
        command: shell text. `{config_path}` in it is replaced by the path of the configuration, and nothing else is.
        inputs: keys of `specs` or `args` whose URIs the job brings, or key → what is declared of it (`selective`,
            `container_path`, `extract_to_parent`); without both, path in the container → URI.
        outputs: keys that get a place for results, or key → `{"type": "folder" or "file"}`; without both, paths.
        specs: the configuration, which the command finds as a file.
        args: name → value of arguments that are added to the command.
        config_format: `toml`, `yaml` or `json`.
        upload_excludes: patterns of paths below an output that are not taken away.
        mount_path: directory in which data of `s3://BUCKET/KEY` is kept as `BUCKET/KEY` for all jobs.
        flags: names of arguments without a value.
        job_id: the job, where the platform does not name it in `TAO_JOB_ID`.

    Returns:
        `{"command": text, "args_template": ""}`. The text replaces its shell (`exec`), so that signals reach the
        command: what is added behind it does not run.

    Raises:
        TypeError: a value is of a kind that cannot be written down, with its place.
        ValueError: something cannot be right.
    """
    job = described(
        Asked(command, inputs, outputs, specs, args, config_format, upload_excludes, mount_path, flags, job_id)
    )
    lines = [_packed(program("runner")), _packed(json.dumps(job._asdict(), allow_nan=False).encode())]
    mark = f"TOWLINE_{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"
    needs = NEEDS_PYTHON + (NEEDS_NGC if any(each.uri.startswith("ngc://") for each in wanted(job)) else "")
    text = f"{needs}{_HEAD}exec \"$tl_python\" -I -c {quote(_BOOT)} 3<<'{mark}'\n" + "\n".join([*lines, mark, ""])
    return {"command": text, "args_template": ""}


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()
