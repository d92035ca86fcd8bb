"""The Hugging Face Hub: models and datasets by its HTTP API, as huggingface_hub itself asks it."""

import json
import urllib.parse
from typing import Any, Dict, List, Mapping

from towline.stager import web
from towline.stager.problems import Problem
from towline.stager.source import Entry, Found, Reader, Source

_KINDS = {"datasets": "datasets", "spaces": "spaces", "models": "models"}


class Hub(Source):
    """A repository, or what lies below a path of it.

    `hf://[datasets/]OWNER/NAME[@REVISION][/PATH]` as its own file system writes it; `hf_model://OWNER/NAME` and
    `hf_dataset://OWNER/NAME` as TAO does.
    """

    def __init__(self, uri: str, env: Mapping[str, str]) -> None:
        self._uri = uri
        self._kind, self._repo, self._revision, self._path = parse(uri)
        self._endpoint = (env.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        token = env.get("HF_TOKEN") or ""
        self._headers = {"Authorization": "Bearer " + token} if token else {}
        self._headers["Accept-Encoding"] = "identity"
        self._commit = ""

    def find(self) -> Found:
        """The files of the revision as it is now; its commit stands for the whole."""
        about = self._json("{}/revision/{}".format(self._api(), _quote(self._revision, "")))
        self._commit = str(about.get("sha", ""))
        entries = self._below(self._path)
        if entries is None:
            entries = [each for each in self._listed(self._path.rpartition("/")[0]) if each.handle == self._path]
            if not entries:
                raise Problem("not-found", "{}: the repository has no such path".format(self._uri))
            return Found("file", [entries[0]._replace(path="")], self._commit)
        return Found("directory", entries, self._commit)

    def _below(self, path: str) -> "List[Entry] | None":
        """The files below a path; None when it is no directory."""
        try:
            return self._listed(path, deep=True)
        except Problem as problem:
            if problem.kind == "not-found" and path:
                return None
            raise

    def _listed(self, path: str, deep: bool = False) -> List[Entry]:
        url = "{}/tree/{}{}?recursive={}".format(
            self._api(), self._commit, "/" + _quote(path) if path else "", "true" if deep else "false"
        )
        entries: List[Entry] = []
        while url:
            answer = web.ask(url, headers=self._headers)
            files = [each for each in _parsed(answer.read()) if each.get("type") == "file"]
            entries += [_entry(each, path if deep else "") for each in files]
            url = next_page(answer.headers.get("link", ""))
        return entries

    def open(self, entry: Entry, offset: int) -> Reader:
        """The file's bytes of that very commit."""
        kind = "" if self._kind == "models" else self._kind + "/"
        url = "{}/{}{}/resolve/{}/{}".format(self._endpoint, kind, self._repo, self._commit, _quote(entry.handle))
        return web.from_offset(url, self._headers, offset, "")

    def _api(self) -> str:
        return "{}/api/{}/{}".format(self._endpoint, self._kind, self._repo)

    def _json(self, url: str) -> Dict[str, Any]:
        found = json.loads(web.ask(url, headers=self._headers).read().decode("utf-8"))
        return dict(found)


def parse(uri: str) -> "tuple[str, str, str, str]":
    """Kind, repository, revision and path of a URI.

    Raises:
        Problem: it names no repository.
    """
    scheme, _, rest = uri.partition("://")
    kind = {"hf_model": "models", "hf_dataset": "datasets"}.get(scheme, "models")
    parts = [part for part in rest.split("/") if part]
    if scheme == "hf" and parts and parts[0] in _KINDS:
        kind = _KINDS[parts.pop(0)]
    if len(parts) < 2:
        raise Problem("names", "{} names no repository; write OWNER/NAME".format(uri))
    name, _, revision = parts[1].partition("@")
    return kind, "{}/{}".format(parts[0], name), urllib.parse.unquote(revision) or "main", "/".join(parts[2:])


def next_page(link: str) -> str:
    """The URL of the next page in a Link header; empty for the last."""
    for part in link.split(","):
        url, _, what = part.partition(";")
        if 'rel="next"' in what:
            return url.strip().strip("<>")
    return ""


def _parsed(body: bytes) -> "List[Dict[str, Any]]":
    return list(json.loads(body.decode("utf-8")))


def _entry(facts: Dict[str, Any], below: str) -> Entry:
    """Large files carry the SHA-256 of their content, small ones git's own hash."""
    path, large = str(facts["path"]), facts.get("lfs")
    stamp = "sha256:{}".format(large["oid"]) if large else "git-sha1:{}".format(facts.get("oid", ""))
    return Entry(path[len(below) :].lstrip("/") if below else path, int(facts.get("size", -1)), stamp, path)


def _quote(text: str, safe: str = "/") -> str:
    return urllib.parse.quote(text, safe=safe)
