"""Taking results away: a file or a directory to an object store, or to another place on the shared file system."""

import concurrent.futures
import hashlib
import os
import time
from typing import List, Mapping, Optional, Sequence, Tuple
from xml.etree import ElementTree

from towline.stager.copying import copy_all
from towline.stager.problems import Problem, of_system
from towline.stager.s3 import PART, Client, store_of
from towline.stager.trees import files_of
from towline.stager.web import Answer

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before a request that was not answered is sent again."""
_AT_A_TIME = 8
_ENOUGH = 16
"""So many files that could not be sent say that no other can be."""


def destinations(results: str, outputs: str, tasks: str = "") -> List[Tuple[str, str]]:
    """What is taken where, as pairs of a path and a URI.

    Args:
        results: the directory of the job's results.
        outputs: a file with two lines for each output: the URI, and the path below the results.
        tasks: a file with the numbers of an array's tasks, one a line: task 3 has its results in `3` of the directory,
            and its place in `3` below the URI. Empty for any other job.
    """
    lines = _lines(outputs)
    pairs = [(path, uri) for uri, path in zip(lines[::2], lines[1::2])]  # noqa: B905  Python 3.6
    if not tasks:
        return [(os.path.join(results, path), uri) for path, uri in pairs]
    return [
        (os.path.join(results, task, path), "{}/{}/".format(uri.rstrip("/"), task))
        for task in _lines(tasks)
        for path, uri in pairs
    ]


def _lines(path: str) -> List[str]:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().split("\n")[:-1]


def send_all(wanted: Sequence[Tuple[str, str]], env: Mapping[str, str]) -> None:
    """Send what is there; one that the job has not made is told, and keeps nothing else back.

    Raises:
        Problem: something could not be sent, or is not there.
    """
    missing: List[Problem] = []
    for source, uri in wanted:
        try:
            files, size = send(source, uri, env)
            print("[INFO] sent {} files, {} bytes to {}".format(files, size, uri), flush=True)
        except Problem as problem:
            if problem.kind != "not-found" or os.path.lexists(source):
                raise
            print("[WARN] {}".format(problem.text), flush=True)
            missing.append(problem)
    if missing:
        more = " and {} more".format(len(missing) - 1) if missing[1:] else ""
        raise Problem("not-found", missing[0].text + more)


def send(source: str, uri: str, env: Mapping[str, str], excludes: Sequence[str] = ()) -> Tuple[int, int]:
    """Send what is at `source`; a directory's files land below the URI.

    Args:
        source: a file or directory.
        uri: where it goes: an object store, or an absolute path.
        env: variables with keys and endpoints.
        excludes: patterns (fnmatch) of a directory's files, by their path below it, that stay.

    Returns:
        How many files and bytes.

    Raises:
        Problem: something could not be sent; the rest was, unless much failed.
    """
    if not os.path.lexists(source):
        raise Problem("not-found", "{}: the job has made nothing of that name".format(source))
    if uri.startswith("/"):
        return copy_all(source, uri, excludes)
    scheme, _, rest = uri.partition("://")
    if scheme not in ("s3", "gs"):
        raise Problem("tool", "{}: nothing can be sent there".format(uri))
    bucket, _, key = rest.partition("/")
    client = Client(store_of(scheme, env))
    if os.path.isfile(source) and (not key or key.endswith("/")):
        key += os.path.basename(source)
    wanted = [(path, "/".join(filter(None, [key.rstrip("/"), below]))) for path, below in files_of(source, excludes)]
    sizes = _all_of([(client, bucket, target, path) for path, target in wanted])
    return len(sizes), sum(sizes)


def _all_of(wanted: Sequence[Tuple[Client, str, str, str]]) -> List[int]:
    """Sizes of what was written; when something cannot be, the rest is tried all the same."""
    sizes: List[int] = []
    problems: List[Problem] = []
    with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
        futures = [pool.submit(put, *each) for each in wanted]
        for future in concurrent.futures.as_completed(futures):
            if future.cancelled():
                continue
            try:
                sizes.append(future.result())
            except Problem as problem:
                problems.append(problem)
            except OSError as error:  # it went away, or cannot be read
                problems.append(of_system(error))
            if len(problems) == _ENOUGH:
                for each in futures:
                    each.cancel()
    if problems:
        left = len(wanted) - len(sizes)
        more = " ({} of {} files were not sent)".format(left, len(wanted)) if len(wanted) > 1 else ""
        raise Problem(problems[0].kind, problems[0].text + more)
    return sizes


def put(client: Client, bucket: str, key: str, path: str) -> int:
    """Write one object, a large one in parts; an equal one that is there stays.

    Returns:
        Its bytes.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        if size <= PART:
            body = file.read()
            if _is_there(client, bucket, key, body):
                return size
            _asked(client, "PUT", bucket, key, body=body).close()
            return size
        upload = _text(_asked(client, "POST", bucket, key, {"uploads": ""}, body=b"").read(), "UploadId")
        try:
            tags: List[str] = []
            while True:
                body = file.read(PART)
                if not body:
                    break
                where = {"partNumber": str(len(tags) + 1), "uploadId": upload}
                answer = _asked(client, "PUT", bucket, key, where, body=body)
                tags.append(answer.headers.get("etag", ""))
                answer.close()
            parts = "".join(
                "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>".format(number, tag)
                for number, tag in enumerate(tags, 1)
            )
            whole = "<CompleteMultipartUpload>{}</CompleteMultipartUpload>".format(parts).encode()
            said = _asked(client, "POST", bucket, key, {"uploadId": upload}, body=whole).read()
            if b"<Error>" in said:  # it may come with status 200
                raise Problem("network", "{}: {}".format(key, _text(said, "Message")))
        except Problem:
            client.ask("DELETE", bucket, key, {"uploadId": upload}).close()
            raise
    return size


def _asked(
    client: Client, method: str, bucket: str, key: str, query: Optional[Mapping[str, str]] = None, body: bytes = b""
) -> Answer:
    """One request that may be sent again, when the store does not answer."""
    for pause in PAUSES:
        try:
            return client.ask(method, bucket, key, query, body=body)
        except Problem as problem:
            if problem.kind != "network":
                raise
            time.sleep(pause)
    return client.ask(method, bucket, key, query, body=body)


def _is_there(client: Client, bucket: str, key: str, body: bytes) -> bool:
    try:
        answer = client.ask("HEAD", bucket, key)
    except Problem as problem:
        if problem.kind in ("not-found", "credentials"):
            return False
        raise
    answer.close()
    return answer.headers.get("etag", "").strip('"') == hashlib.md5(body).hexdigest()  # noqa: S324


def _text(body: bytes, name: str) -> str:
    for element in ElementTree.fromstring(body).iter():  # noqa: S314
        if element.tag.rpartition("}")[2] == name:
            return element.text or ""
    return ""
