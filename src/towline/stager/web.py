"""HTTP as the sources need it: keys never follow a redirection, and errors say what they mean."""

import base64
import http.client
import netrc
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Optional

from towline.stager import problems
from towline.stager.problems import Problem
from towline.stager.source import Entry, Found, Reader, Source

CONNECT_SECONDS = 20.0
"""Seconds of silence after which a connection counts as lost."""
SECRET_HEADERS = ("authorization", "x-amz-security-token")


class Answer(Reader):
    """A server's answer: its headers, and its body to be read once."""

    def __init__(self, opened: Any) -> None:
        self._opened = opened
        self.status = int(opened.status)
        self.headers = {str(name).lower(): str(value) for name, value in opened.headers.items()}

    def read(self, size: int = -1) -> bytes:
        """The next bytes.

        Raises:
            Problem: the connection was lost.
        """
        try:
            return bytes(self._opened.read(size) if size >= 0 else self._opened.read())
        except (OSError, http.client.HTTPException) as error:
            raise Problem("network", "the connection was lost: {}".format(error)) from None

    def close(self) -> None:
        """Give the connection back."""
        self._opened.close()


def ask(
    url: str, method: str = "GET", headers: Optional[Dict[str, str]] = None, body: Optional[bytes] = None
) -> Answer:
    """Ask a server; redirections are followed, without the headers that carry keys.

    Raises:
        Problem: it does not answer, or with an error.
    """
    request = urllib.request.Request(url, data=body, method=method)  # noqa: S310  the scheme is checked by who calls
    if body is not None:  # else urllib says that it is a form, and servers take it apart
        request.add_header("Content-Type", "application/octet-stream")
    for name, value in (headers or {}).items():
        if name.lower() in SECRET_HEADERS:
            request.add_unredirected_header(name, value)
        else:
            request.add_header(name, value)
    shown = url.partition("?")[0]
    try:
        return Answer(urllib.request.urlopen(request, timeout=CONNECT_SECONDS))  # noqa: S310
    except urllib.error.HTTPError as error:
        raise Refused(error, shown) from None
    except urllib.error.URLError as error:
        certificate = isinstance(error.reason, ssl.SSLError)
        raise Problem("other" if certificate else "network", "{}: {}".format(shown, error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise Problem("network", "{}: {}".format(shown, error)) from None


class Refused(Problem):
    """A server's answer that is an error.

    Attributes:
        status: the HTTP status.
        headers: its headers, names in lower case.
        said: the body's beginning.
    """

    def __init__(self, error: urllib.error.HTTPError, what: str) -> None:
        self.status = error.code
        self.headers = {name.lower(): value for name, value in error.headers.items()}
        try:
            self.said = error.read(4096).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            self.said = ""
        found = problems.of_status(error.code, what, str(error.reason))
        super().__init__(found.kind, found.text)


def from_offset(url: str, headers: Dict[str, str], offset: int, etag: str) -> Answer:
    """The body of a URL from that byte on; from its beginning where the server cannot do that.

    Raises:
        Problem: it does not answer, or what is there is another thing than before.
    """
    wanted = dict(headers)
    if offset:
        wanted["Range"] = "bytes={}-".format(offset)
        if etag:
            wanted["If-Range"] = etag
    answer = ask(url, headers=wanted)
    if offset and answer.status != 206:
        skip(answer, offset)
    return answer


def skip(answer: Reader, count: int) -> None:
    """Read over that many bytes."""
    while count > 0:
        piece = answer.read(min(count, 1 << 20))
        if not piece:
            raise Problem("network", "the connection was lost")
        count -= len(piece)


class Web(Source):
    """One file behind a URL; the key comes from ~/.netrc where that has the host."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._etag = ""

    def find(self) -> Found:
        """The file as the server describes it."""
        try:
            answer = ask(self._uri, "HEAD", self._headers())
        except Refused as error:
            if error.status not in (400, 403, 405, 501):  # some servers know no HEAD, or sign only GET
                raise
            answer = ask(self._uri, headers=dict(self._headers(), Range="bytes=0-0"))
        answer.close()
        self._etag = answer.headers.get("etag", "")
        return Found("file", [Entry("", _size(answer), self._stamp(answer))])

    def open(self, entry: Entry, offset: int) -> Reader:
        """The file's bytes from there on."""
        strong = self._etag if not self._etag.startswith("W/") else ""
        answer = from_offset(self._uri, self._headers(), offset if strong else 0, strong)
        if self._etag and answer.headers.get("etag", self._etag) != self._etag:
            answer.close()
            raise Problem("changed", "{} was changed while it was brought".format(self._uri))
        if not strong:  # a range of it might be of another file
            skip(answer, offset)
        return answer

    def _stamp(self, answer: Answer) -> str:
        kind = "etag" if self._etag else "time"
        return "{}:{}".format(kind, (self._etag or answer.headers.get("last-modified", "")).strip('"'))

    def _headers(self) -> Dict[str, str]:
        host = urllib.parse.urlsplit(self._uri).hostname or ""
        found = _netrc(host)
        return (
            {"Authorization": "Basic " + found, "Accept-Encoding": "identity"}
            if found
            else {"Accept-Encoding": "identity"}
        )


def _size(answer: Answer) -> int:
    if answer.status == 206:
        total = answer.headers.get("content-range", "").rpartition("/")[2]
    else:
        total = answer.headers.get("content-length", "")
    return int(total) if total.isdigit() else -1


def _netrc(host: str) -> str:
    try:
        found = netrc.netrc(os.path.expanduser("~/.netrc")).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return base64.b64encode("{}:{}".format(found[0], found[2]).encode()).decode() if found else ""
