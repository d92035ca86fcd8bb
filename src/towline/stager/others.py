"""Data that others bring: a file system of fsspec where that is installed, or a tool of the site."""

import importlib
import os
import shutil
import subprocess
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from towline.stager.problems import Problem
from towline.stager.source import Entry, Found, Reader, Source


class FileSystem(Source):
    """What a file system of fsspec sees (s3fs, gcsfs, huggingface_hub and others)."""

    def __init__(self, uri: str, env: Mapping[str, str]) -> None:
        self._uri = uri
        fsspec: Any = importlib.import_module("fsspec")
        scheme = uri.partition("://")[0]
        self._fs: Any = fsspec.filesystem(scheme, **_options(scheme, env))
        self._path = str(self._fs._strip_protocol(uri)).rstrip("/")

    def find(self) -> Found:
        """The files that it finds."""
        try:
            if self._fs.isfile(self._path):
                return Found("file", [_described("", self._fs.info(self._path), self._path)])
            found: Dict[str, Any] = self._fs.find(self._path, detail=True)
        except Exception as error:  # each file system has errors of its own
            raise _of_fsspec(self._uri, error) from None
        if not found:
            raise Problem("not-found", "{}: there is nothing".format(self._uri))
        entries = [_described(path[len(self._path) :].lstrip("/"), facts, path) for path, facts in found.items()]
        return Found("directory", [each for each in entries if each.path])

    def open(self, entry: Entry, offset: int) -> Reader:
        """The file's bytes from there on."""
        try:
            opened = self._fs.open(entry.handle, "rb")
            opened.seek(offset)
        except Exception as error:
            raise _of_fsspec(self._uri, error) from None
        return _Opened(opened, self._uri)


class _Opened(Reader):
    def __init__(self, opened: Any, uri: str) -> None:
        self._opened = opened
        self._uri = uri

    def read(self, size: int = -1) -> bytes:
        try:
            return bytes(self._opened.read(size))
        except Exception as error:
            raise _of_fsspec(self._uri, error) from None

    def close(self) -> None:
        self._opened.close()


def _options(scheme: str, env: Mapping[str, str]) -> Dict[str, Any]:
    """What TAO's variables say in the words of each file system; its own variables it reads itself."""
    if scheme == "s3":
        own = {
            "key": env.get("ACCESS_KEY"),
            "secret": env.get("SECRET_KEY"),
            "endpoint_url": env.get("S3_ENDPOINT_URL"),
        }
        options: Dict[str, Any] = {name: value for name, value in own.items() if value}
        if env.get("CLOUD_REGION"):
            options["client_kwargs"] = {"region_name": env["CLOUD_REGION"]}
        return options
    return {"token": env["HF_TOKEN"]} if scheme == "hf" and env.get("HF_TOKEN") else {}


def _described(path: str, facts: Mapping[str, Any], handle: str) -> Entry:
    stamp = ""
    for name in ("ETag", "etag", "sha256", "md5Hash", "mtime", "LastModified"):
        if facts.get(name):
            stamp = "etag:{}".format(str(facts[name]).strip('"'))
            break
    size = facts.get("size")
    return Entry(path, int(size) if size is not None else -1, stamp or "time:", handle)


def _of_fsspec(uri: str, error: Exception) -> Problem:
    words = "{}: {}: {}".format(uri, type(error).__name__, error)
    if isinstance(error, FileNotFoundError):
        return Problem("not-found", words)
    if isinstance(error, PermissionError) or "Credential" in type(error).__name__:
        return Problem("credentials", words)
    return Problem("network", words)


def has_fsspec() -> bool:
    """Whether fsspec can be imported here."""
    try:
        importlib.import_module("fsspec")
    except ImportError:
        return False
    return True


TOOLS = {
    "aws": ("s3",),
    "rclone": ("s3", "gs"),
    "gcloud": ("gs",),
    "hf": ("hf", "hf_model", "hf_dataset"),
}
"""Each tool with the schemes that it is used for. That of NGC is in `towline.stager.ngc`."""


def tool_for(scheme: str, wanted: Sequence[str]) -> str:
    """The tool that brings data of that scheme: the first of the wanted ones that can; empty for none."""
    return next((tool for tool in wanted if scheme in TOOLS.get(tool, ())), "")


class Tool(Source):
    """What a program of the site brings; it goes on where it was by itself, and checks what it brings."""

    def __init__(self, uri: str, tool: str, env: Mapping[str, str]) -> None:
        self._uri = uri
        self._tool = tool
        self._env = dict(env)
        if not shutil.which(tool):
            raise Problem("tool", "{}: there is no program `{}` on {}".format(uri, tool, os.uname().nodename))

    def find(self) -> Found:
        """Nothing can be told before it is brought."""
        raise Problem("other", "{}: `{}` tells what is there only by bringing it".format(self._uri, self._tool))

    def take(self, target: str) -> Optional[Found]:
        """Have it brought: below `target`, or as `target` itself where the URI names a file."""
        argv, extra = command(self._tool, self._uri, target, self._env)
        self._run(argv, extra)
        if self._tool == "aws" and not (os.path.isdir(target) and os.listdir(target)):
            # `sync` knows prefixes only, and succeeds without a file of that name.
            if os.path.isdir(target):
                os.rmdir(target)
            argv[argv.index("sync")] = "cp"
            self._run(argv, extra)
        return brought(target, self._uri, self._tool)

    def _run(self, argv: Sequence[str], extra: Mapping[str, str]) -> None:
        run(self._tool, argv, dict(self._env, **extra))


def run(
    tool: str, argv: Sequence[str], env: Mapping[str, str], kinds: Mapping[int, str] = MappingProxyType({})
) -> None:
    """Run a tool to its end.

    Args:
        tool: its name, for people.
        argv: its command line.
        env: its environment.
        kinds: kinds of problems by exit code; `other` for those that are not named.

    Raises:
        Problem: it cannot be run, or has failed; with the last line that it printed.
    """
    try:
        done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise Problem("tool", "`{}` cannot be run: {}".format(tool, error.strerror)) from None
    if done.returncode:
        said = (done.stdout.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
        words = "`{}` failed with {}: {}".format(tool, done.returncode, said)
        raise Problem(kinds.get(done.returncode, "other"), words)


def brought(target: str, uri: str, tool: str) -> Found:
    """What a tool has brought.

    Raises:
        Problem: nothing.
    """
    if os.path.isfile(target):
        return Found("file", [_entry(target, "")])
    entries = _walked(target)
    if not entries:
        raise Problem("not-found", "{}: `{}` brought nothing".format(uri, tool))
    return Found("directory", entries)


def command(tool: str, uri: str, target: str, env: Mapping[str, str]) -> Tuple[List[str], Dict[str, str]]:
    """The command line, and the variables that it needs besides; keys are only ever in variables."""
    scheme, _, rest = uri.partition("://")
    aws = {"AWS_ACCESS_KEY_ID": env.get("ACCESS_KEY", ""), "AWS_SECRET_ACCESS_KEY": env.get("SECRET_KEY", "")}
    own = {name: value for name, value in aws.items() if value and not env.get(name)}
    endpoint = env.get("S3_ENDPOINT_URL", "") or env.get("AWS_ENDPOINT_URL", "")
    if tool == "aws":
        where = ["--endpoint-url", endpoint] if endpoint else []
        return ["aws", *where, "s3", "sync", "--no-progress", uri.rstrip("/"), target], own
    if tool == "rclone":
        kind = {"s3": "s3", "gs": "google cloud storage"}[scheme]
        remote = {"RCLONE_CONFIG_TOWLINE_TYPE": kind, "RCLONE_CONFIG_TOWLINE_ENV_AUTH": "true"}
        if endpoint and scheme == "s3":
            remote["RCLONE_CONFIG_TOWLINE_PROVIDER"] = "Other"
            remote["RCLONE_CONFIG_TOWLINE_ENDPOINT"] = endpoint
        return ["rclone", "copyto", "--checksum", "towline:" + rest, target], dict(own, **remote)
    if tool == "gcloud":
        return ["gcloud", "storage", "rsync", "--recursive", uri, target], {}
    from towline.stager.hub import parse

    kind, repo, revision, path = parse(uri)
    only = ["--include", path + "*"] if path else []
    where = ["--repo-type", kind[:-1], "--revision", revision, "--local-dir", target]
    return ["hf", "download", repo, *where, *only], {}


def _walked(target: str) -> List[Entry]:
    entries: List[Entry] = []
    for folder, _, names in os.walk(target):
        for name in names:
            path = os.path.join(folder, name)
            entries.append(_entry(path, os.path.relpath(path, target)))
    return entries


def _entry(path: str, name: str) -> Entry:
    facts = os.lstat(path)
    return Entry(name, facts.st_size, "time:{}".format(int(facts.st_mtime)))
