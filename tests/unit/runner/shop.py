"""An object store in memory that speaks as much of S3 as inputs and uploads need, and counts what it is asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.unit.stager.answers import Quiet, served


@dataclass
class Shop:
    """What it has, what was asked, and when it answers.

    Attributes:
        objects: content by `bucket/key`.
        gets: how often each was read.
        puts: how often something was to be written.
        refused: keys that cannot be written.
        open: no body is sent before.
        breaks_after: bytes after which a connection is lost; 0 for never.
    """

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    gets: Counter[str] = field(default_factory=Counter[str])
    puts: int = 0
    refused: set[str] = field(default_factory=set[str])
    open: Event = field(default_factory=Event)
    breaks_after: int = 0
    url: str = ""

    def __post_init__(self) -> None:
        self.open.set()

    @property
    def env(self) -> dict[str, str]:
        return {"S3_ENDPOINT_URL": self.url, "ACCESS_KEY": "a", "SECRET_KEY": "s"}


class Counterpart(Quiet):
    """Answers for a shop."""

    shop: Shop

    def do_HEAD(self) -> None:  # noqa: N802
        found = self.shop.objects.get(self._key())
        self._answer(404 if found is None else 200, found or b"", head=True)

    def do_GET(self) -> None:  # noqa: N802
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            self._answer(200, self._listing(query.get("prefix", [""])[0]).encode())
            return
        key = self._key()
        self.shop.gets[key] += 1
        self.shop.open.wait(120)
        content, begin = self.shop.objects[key], 0
        if self.headers.get("Range"):
            begin = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        self._answer(206 if begin else 200, content[begin:], etag=content)

    def do_PUT(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.shop.puts += 1
        if self._key() in self.shop.refused:
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
            return
        self.shop.objects[self._key()] = body
        self._answer(200, b"")

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def _listing(self, prefix: str) -> str:
        bucket = self._key()
        keys = sorted(key for key in self.shop.objects if key.startswith(f"{bucket}/{prefix}"))
        rows = "".join(
            f"<Contents><Key>{key.partition('/')[2]}</Key><Size>{len(self.shop.objects[key])}</Size>"
            f"<ETag>{_md5(self.shop.objects[key])}</ETag></Contents>"
            for key in keys
        )
        return f"<ListBucketResult>{rows}</ListBucketResult>"

    def _answer(self, status: int, body: bytes, *, head: bool = False, etag: bytes | None = None) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"{_md5(body if etag is None else etag)}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not head:
            self.wfile.write(body[: self.shop.breaks_after] if self.shop.breaks_after else body)


def _md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()  # noqa: S324


@contextmanager
def opened(address: str = "127.0.0.1") -> Generator[Shop]:
    """A shop that is open."""
    shop = Shop()
    handler: Any = type("Handler", (Counterpart,), {"shop": shop})
    with served(handler, address) as url:
        shop.url = url
        yield shop
