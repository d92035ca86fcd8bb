"""Taking results away: a file or a directory to an object store, or to another place on the shared file system."""

import concurrent.futures
import hashlib
import os
import shutil
import time
from typing import Iterator, List, Mapping, Optional, Tuple
from xml.etree import ElementTree

from towline.stager.problems import Problem, of_system
from towline.stager.s3 import PART, Client, store_of
from towline.stager.web import Answer

PAUSES = (1.0, 4.0, 15.0)
"""Seconds before a request that was not answered is sent again."""
_AT_A_TIME = 8


def send(source: str, uri: str, env: Mapping[str, str]) -> Tuple[int, int]:
    """Send what is at `source`; a directory's files land below the URI.

    Returns:
        How many files and bytes.

    Raises:
        Problem: something could not be sent.
    """
    if not os.path.lexists(source):
        raise Problem("not-found", "{}: the job has made nothing of that name".format(source))
    if uri.startswith("/"):
        return _copy(source, uri)
    scheme, _, rest = uri.partition("://")
    if scheme not in ("s3", "gs"):
        raise Problem("tool", "{}: nothing can be sent there".format(uri))
    bucket, _, key = rest.partition("/")
    client = Client(store_of(scheme, env))
    if os.path.isfile(source) and (not key or key.endswith("/")):
        key += os.path.basename(source)
    wanted = [(path, "/".join(filter(None, [key.rstrip("/"), below]))) for path, below in _files(source)]
    with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
        futures = [pool.submit(put, client, bucket, target, path) for path, target in wanted]
        sizes = [future.result() for future in futures]
    return len(sizes), sum(sizes)


def _files(source: str) -> Iterator[Tuple[str, str]]:
    """Every plain file with its path below the source; a job's links and devices are not followed."""
    if os.path.isfile(source) and not os.path.islink(source):
        yield source, ""
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path, os.path.relpath(path, source)


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


def _copy(source: str, target: str) -> Tuple[int, int]:
    """On the shared file system: each file under another name first, then renamed; links as they are."""
    count, size = 0, 0
    try:
        for path, below in _files(source):
            goal = os.path.join(target, below) if below else target
            if not below and os.path.isdir(goal):
                goal = os.path.join(goal, os.path.basename(source))
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            fresh = "{}.towline-{}".format(goal, os.getpid())
            shutil.copy2(path, fresh)
            os.replace(fresh, goal)
            count, size = count + 1, size + os.path.getsize(goal)
    except OSError as error:
        raise of_system(error) from None
    return count, size
