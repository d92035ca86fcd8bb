"""`build_entrypoint`: what is wrong is said when it is called, and its text runs in any shell."""

from __future__ import annotations

import enum
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from towline.tao.entrypoint import Asked, described
from towline.tao.script_runner import build_entrypoint


class Precision(enum.Enum):
    HALF = "bf16"


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"specs": {}, "args": {}}, ValueError, "either specs or args"),
        ({"command": "  "}, ValueError, "the command is empty"),
        ({"command": ["train"]}, TypeError, r"command must be text, not \['train'\]"),
        ({"config_format": None}, TypeError, "config_format must be text"),
        ({"command": "a\0b"}, ValueError, "NUL"),
        ({"command": "train {config_path}"}, ValueError, "there is no configuration; give specs"),
        ({"specs": {"train.lr": 1}}, ValueError, "'train.lr' is written with a dot.*{'train': {'lr': …}}"),
        ({"specs": {"a": {"b": None}}}, TypeError, r"specs: a\.b: TOML cannot hold a value that is None"),
        ({"specs": {"a": 1 << 64}}, ValueError, "a: TOML cannot hold a number of more than 64 bits"),
        ({"specs": {"lr": float("nan")}}, ValueError, r"specs\['lr'\].*not a finite number"),
        ({"specs": {1: 2}}, TypeError, "keys must be texts"),
        ({"specs": {"a": {1, 2}}}, TypeError, r"specs\['a'\]: set is no value"),
        ({"specs": {}, "config_format": "ini"}, ValueError, "config_format: 'ini' is none; there are toml, yaml, json"),
        ({"specs": {"a": "ftp://x/y"}, "inputs": ["a"]}, ValueError, "inputs: a: nothing is known to bring ftp://x/y"),
        ({"specs": {"a": ["s3://x", "x://y"]}, "inputs": ["a"]}, ValueError, "nothing is known to bring x://y"),
        ({"specs": {"a": "hf://x/y"}, "outputs": ["a"]}, ValueError, "outputs: a: nothing can be taken to hf://x/y"),
        ({"specs": {}, "inputs": ["a["]}, ValueError, "'a\\[' is no key"),
        ({"specs": {}, "outputs": ["a.b", "a_b"]}, ValueError, r"a\.b and a_b would both be called a_b"),
        (
            {"specs": {}, "inputs": {"media": {"selective": {"annotation": "list"}}}},
            ValueError,
            "media is brought by the annotations of 'list', which is no input",
        ),
        ({"args": {"a b": 1}}, ValueError, "'a b' is no name of an argument"),
        ({"args": {"a": "x" * (128 << 10)}}, ValueError, "a is longer than 128 KiB"),
        ({"args": {}, "flags": ["x;y"]}, ValueError, "flags: 'x;y' is no name"),
        ({"flags": ["verbose"]}, ValueError, "flags are added to arguments"),
        ({"inputs": {"data": "s3://b/c"}}, ValueError, "'data' is no absolute path"),
        ({"inputs": {"/data": "ftp://b/c"}}, ValueError, "inputs: /data: nothing is known to bring ftp://b/c"),
        ({"inputs": ["/data"]}, TypeError, "/data must have a URI"),
        ({"outputs": ["out"]}, ValueError, "outputs: 'out' is no absolute path"),
        ({"outputs": ["/a/x", "/b/x/"]}, ValueError, "/a/x and /b/x/ would both be called x"),
        ({"outputs": "/results"}, TypeError, "outputs must be a table or a list of texts"),
        ({"upload_excludes": "*.tmp"}, TypeError, "upload_excludes must be a list of texts"),
        ({"mount_path": "cache"}, ValueError, "mount_path: 'cache' is no absolute path"),
        ({"job_id": "../x"}, ValueError, "job_id: '../x' is no name"),
    ],
)
def test_what_is_wrong_is_said_before_a_job_is_sent(asked: dict[str, Any], kind: type[Exception], words: str) -> None:
    whole: dict[str, Any] = {"command": "true", **asked}
    with pytest.raises(kind, match=words):
        described(Asked(**whole))


def test_values_become_plain_and_stay_the_callers() -> None:
    specs = {"precision": Precision.HALF, "data": Path("/data"), "sizes": (1, 2)}
    job = described(Asked("train {config_path}", specs=specs, config_format="YAML"))
    assert job.payload == {"precision": "bf16", "data": "/data", "sizes": [1, 2]}
    assert job.config_format == "yaml"
    assert specs["precision"] is Precision.HALF


def test_an_output_may_be_nothing_yet_in_toml() -> None:
    specs = {"train": {"results_dir": None}, "out": {"nested": None}}
    job = described(Asked("x {config_path}", specs=specs, outputs={"train.results_dir": {"type": "folder"}, "out": {}}))
    assert job.payload == specs


@pytest.mark.parametrize(
    ("asked", "mode"),
    [
        ({"specs": {}}, "config"),
        ({"args": {}}, "args"),
        ({}, "passthrough"),
        ({"inputs": {"/d": "s3://b/d"}}, "passthrough"),
    ],
)
def test_the_mode_follows_from_what_is_given(asked: dict[str, Any], mode: str) -> None:
    assert described(Asked("true", **asked)).mode == mode


# --- The text ---


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    own = {"TAO_RESULTS_ROOT": str(tmp_path), "TAO_JOB_ID": "j1", "TMPDIR": str(tmp_path / "tmp")}
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **own}


def run(shell: str, env: dict[str, str], **asked: Any) -> subprocess.CompletedProcess[str]:
    text = build_entrypoint(**asked)["command"]
    return subprocess.run([*shell.split(), "-c", text], env=env, capture_output=True, text=True, timeout=60)


SHELLS = ["sh", "bash", "busybox sh"]
AWK = """awk 'BEGIN { x["a b"] = "{y}"; for (k in x) { printf "%s %s\\n", k, x[k] } }'
echo "$HOME" '$HOME' `echo "{}"`"""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_runs_as_it_is_and_keeps_its_code(shell: str, env: dict[str, str]) -> None:
    done = run(shell, {**env, "HOME": "/me"}, command=AWK + "\nexit 7")
    assert (done.stdout, done.returncode) == ("a b {y}\n/me $HOME {}\n", 7)
    assert done.stderr == "towline: the command ended with exit code 7\n"
    assert os.listdir(env["TMPDIR"]) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_arguments_are_words_whatever_they_hold(shell: str, env: dict[str, str]) -> None:
    args = {
        "text": "it's {a} $HOME `x` \n",
        "values": [2, 4.5],
        "none": None,
        "yes": True,
        "empty": "",
        "where": "lustre:///d",
    }
    done = run(shell, env, command="printf '<%s>\\n'", args=args, flags=["--verbose", "dry-run"])
    words = ["--text", "it's {a} $HOME `x` \n", "--values", "[2, 4.5]", "--yes", "True", "--empty", "", "--where", "/d"]
    assert done.stdout == "".join(f"<{word}>\n" for word in [*words, "--verbose", "--dry-run"])


def test_an_image_without_python_says_so(env: dict[str, str], tmp_path: Path) -> None:
    done = run("/bin/sh", {**env, "PATH": str(tmp_path)}, command="true")
    assert done.returncode == 127
    assert "this image has no Python 3.8 or later" in done.stderr


def test_a_temporary_directory_that_cannot_be_written_is_said(env: dict[str, str]) -> None:
    text = build_entrypoint(command="true")["command"].replace("mkdtemp(", 'mkdtemp(dir="/proc", ')
    done = subprocess.run(["sh", "-c", text], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("towline: no temporary directory can be written (")
    assert "Traceback" not in done.stderr


def test_modules_of_the_working_directory_are_not_the_runners(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    text = build_entrypoint(command="echo started")["command"]
    done = subprocess.run(["sh", "-c", text], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "started\n"


def test_it_is_text_of_any_size(env: dict[str, str]) -> None:
    names = [f"/lustre/data/{number:06d}.jpg" for number in range(40_000)]
    text = build_entrypoint(command="true", specs={"data": {"names": names}})["command"]
    assert len(json.dumps(names)) > 1_000_000
    assert len(text) < 1 << 20, "what SlurmSDK.create_job takes"


def test_it_has_the_shape_that_scripts_know() -> None:
    made = build_entrypoint(command="true")
    assert set(made) == {"command", "args_template"}
    assert made["args_template"] == ""
    assert len(made["command"]) < 100_000, "short enough for `sh -c` with specs beside"
