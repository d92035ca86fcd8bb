"""The program as it is sent: one file that the system's own Python runs."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from tests.unit.stager.answers import Quiet, served
from tests.unit.stager.language import too_new
from towline.engine.data.program import program
from towline.stager.problems import Problem
from towline.stager.web import Web

PYTHON = "/usr/bin/python3"
STAGER = Path(__file__).parents[3] / "src" / "towline" / "stager"


def run(folder: Path, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "stager").write_bytes(program())
    argv, own = [PYTHON, str(folder / "stager"), *words], {"PATH": "/usr/bin:/bin", "HOME": str(folder), **env}
    return subprocess.run(argv, input=stdin, env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", sorted(STAGER.glob("*.py")), ids=lambda path: path.name)
def test_pythons_of_old_clusters_can_read_it(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 6))
    assert too_new(path.read_text(), (3, 6)) == []


def test_what_is_too_new_is_seen() -> None:
    text = "import dataclasses\nfrom functools import cache\nx.removeprefix('a')\n"
    text += "os.chdir(x)\no.run([], text=True)"
    found = too_new(text, (3, 6))
    assert found == [
        "line 1: dataclasses is of Python 3.7",
        "line 2: cache is of Python 3.9",
        "line 3: removeprefix is of Python 3.9",
        "line 5: run(text=) is of Python 3.7",
    ]
    assert len(too_new(text, (3, 8))) == 2


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "words.txt").write_text("words\n")
    handler = type("Handler", (Quiet, SimpleHTTPRequestHandler), {})
    with served(partial(handler, directory=str(tmp_path / "web"))) as url:
        yield url


def test_a_file_is_asked_for_and_brought(web: str, tmp_path: Path) -> None:
    uri = f"{web}/words.txt"
    asked = run(tmp_path, "ask", stdin=f"{uri}\n{web}/nothing\nngc://org/team/model:1\n")
    facts = dict(line.split("=", 1) for line in asked.stdout.splitlines())
    assert (facts["0 kind"], facts["0 size"]) == ("file", "6")
    assert facts["1 error"].startswith("not-found ")
    assert facts["2 error"].startswith("tool ")
    (tmp_path / "part").mkdir()
    done = run(tmp_path, "bring", uri, str(tmp_path / "part"), facts["0 version"], "", "-")
    assert done.returncode == 0, done
    assert (tmp_path / "part" / "data").read_text() == "words\n"
    assert f"version={facts['0 version']}" in (tmp_path / "part" / "facts").read_text()
    changed = run(tmp_path, "bring", uri, str(tmp_path / "part"), "0" * 64, "", "-")
    assert changed.returncode == 1
    assert "[ERROR] changed: " in changed.stdout


def test_a_server_that_knows_no_ranges_is_read_over(web: str) -> None:
    """Python's own is such a server, and tells no ETag either."""
    source = Web(f"{web}/words.txt")
    (entry,) = source.find().entries
    reader = source.open(entry, 2)
    assert reader.read() == b"rds\n"
    reader.close()


def test_a_file_that_changes_while_it_is_brought_is_told() -> None:
    class Changing(Quiet):
        asked = 0

        def do_GET(self) -> None:  # noqa: N802
            Changing.asked += 1
            self.send_response(200)
            self.send_header("ETag", f'"{Changing.asked}"')
            self.send_header("Content-Length", "4")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"text")

        do_HEAD = do_GET  # noqa: N815

    with served(Changing) as url:
        source = Web(f"{url}/x")
        (entry,) = source.find().entries
        with pytest.raises(Problem) as changed:
            source.open(entry, 2)
    assert changed.value.kind == "changed"


def test_a_tool_of_the_site_gets_keys_in_its_environment_only(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    tool = bin_ / "rclone"
    tool.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" >"$HOME/words"\nenv >"$HOME/environment"\nmkdir -p "$4" && echo hi >"$4/a"\n'
    )
    tool.chmod(0o755)
    (tmp_path / "part").mkdir()
    env = {"PATH": f"{bin_}:/usr/bin:/bin", "ACCESS_KEY": "me", "SECRET_KEY": "sesame", "S3_ENDPOINT_URL": "http://s"}
    done = run(tmp_path, "bring", "s3://sets/train", str(tmp_path / "part"), "-", "", "rclone", **env)
    assert done.returncode == 0, done
    assert (tmp_path / "part" / "data" / "a").read_text() == "hi\n"
    words = (tmp_path / "words").read_text()
    assert "towline:sets/train" in words
    assert "sesame" not in words
    environment = (tmp_path / "environment").read_text()
    assert "AWS_SECRET_ACCESS_KEY=sesame" in environment
    assert "RCLONE_CONFIG_TOWLINE_ENDPOINT=http://s" in environment


def test_a_tool_brings_one_file_as_a_file_under_the_version_that_was_asked_for(tmp_path: Path) -> None:
    """`aws s3 sync` of an object brings nothing, and succeeds."""
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "aws"
    tool.write_text('#!/bin/sh\nfor word; do target=$word; done\ncase $* in *sync*) ;; *) echo hi >"$target" ;; esac\n')
    tool.chmod(0o755)
    (tmp_path / "part").mkdir()
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    done = run(tmp_path, "bring", "s3://sets/one", str(tmp_path / "part"), "7" * 64, "", "aws", PATH=path)
    assert done.returncode == 0, done
    assert (tmp_path / "part" / "data").read_text() == "hi\n"
    facts = (tmp_path / "part" / "facts").read_text().splitlines()
    assert facts == ["version=" + "7" * 64, "kind=file", "files=1", "size=3"]
    tool.chmod(0o644)
    tool.with_name("python3").symlink_to(PYTHON)
    gone = run(tmp_path, "bring", "s3://sets/one", str(tmp_path / "part"), "-", "", "aws", PATH=f"{tmp_path}/bin")
    assert "[ERROR] tool: s3://sets/one: there is no program `aws`" in gone.stdout


def test_fsspec_that_is_not_there_is_told_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    done = run(tmp_path, "bring", "s3://sets/one", str(tmp_path / "part"), "-", "", "fsspec")
    assert done.returncode == 1
    assert f"[ERROR] tool: s3://sets/one: there is no fsspec for {PYTHON}" in done.stdout


def test_a_repository_of_the_hub_is_brought_at_one_commit(tmp_path: Path, hub: str) -> None:
    env = {"HF_ENDPOINT": hub, "HF_TOKEN": "hf-token"}
    (tmp_path / "part").mkdir()
    done = run(tmp_path, "bring", "hf_dataset://org/set", str(tmp_path / "part"), "-", "", "-", **env)
    assert done.returncode == 0, done
    assert (tmp_path / "part" / "data" / "README.md").read_text() == "small\n"
    assert (tmp_path / "part" / "data" / "train" / "0.bin").read_text() == "large\n"
    one = run(tmp_path, "ask", stdin="hf://datasets/org/set@v1/train/0.bin\n", **env)
    assert "kind=file" in one.stdout, one
    denied = run(tmp_path, "ask", stdin="hf_dataset://org/set\n", HF_ENDPOINT=hub)
    assert "error=credentials" in denied.stdout, denied


@pytest.fixture
def hub() -> Iterator[str]:
    """The Hub's API, as far as its documentation tells of it."""
    small, big = b"small\n", b"large\n"
    large = hashlib.sha256(big).hexdigest()
    oid = hashlib.sha1(b"blob 6\0" + small).hexdigest()  # noqa: S324  what git calls it
    files = [
        {"type": "file", "path": "README.md", "size": 6, "oid": oid},
        {"type": "directory", "path": "train", "size": 0, "oid": "x"},
        {"type": "file", "path": "train/0.bin", "size": 6, "oid": "x", "lfs": {"oid": large, "size": 6}},
    ]
    api = "/api/datasets/org/set"
    pages = {
        f"{api}/revision/main": json.dumps({"sha": "c0ffee"}),
        f"{api}/revision/v1": json.dumps({"sha": "c0ffee"}),
        f"{api}/tree/c0ffee?recursive=true": json.dumps(files),
        f"{api}/tree/c0ffee/train?recursive=false": json.dumps(files[2:]),
        "/datasets/org/set/resolve/c0ffee/README.md": small.decode(),
        "/datasets/org/set/resolve/c0ffee/train/0.bin": big.decode(),
    }

    class Handler(Quiet):
        def do_GET(self) -> None:  # noqa: N802
            allowed = self.headers.get("Authorization") == "Bearer hf-token"
            body = pages.get(self.path, "").encode()
            self.send_response(401 if not allowed else 200 if body else 404)
            self.send_header("Content-Length", str(len(body) if allowed else 0))
            self.end_headers()
            if allowed:
                self.wfile.write(body)

    with served(Handler) as url:
        yield url
