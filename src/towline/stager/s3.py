"""Object stores that speak S3: signing (AWS Signature Version 4), listing, reading and writing.

Facts are from AWS's documents "Authenticating Requests (AWS Signature Version 4)" and the S3 API reference. Google's
store takes the same requests with its HMAC keys ("Cloud Storage XML API, interoperability").
"""

import configparser
import datetime
import hashlib
import hmac
import os
import urllib.parse
import xml.etree.ElementTree as ElementTree
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from towline.stager import web
from towline.stager.problems import Problem
from towline.stager.source import Entry, Found, Reader, Source

EMPTY = hashlib.sha256(b"").hexdigest()
PART = 64 << 20
"""Bytes of one part of a large object that is written; 10,000 parts are the most."""
_GOOGLE = "https://storage.googleapis.com"
"""Another one is named by the variable that Google's own libraries read for it, STORAGE_EMULATOR_HOST."""
_SSE = ("aws:kms", "aws:kms:dsse")


class Keys(NamedTuple):
    """Access to a store; empty ones ask as anybody."""

    access: str = ""
    secret: str = ""
    session: str = ""


class Store(NamedTuple):
    """Which store, and how it is spoken to.

    Attributes:
        endpoint: URL of the store without a path.
        region: its region.
        keys: access to it.
    """

    endpoint: str
    region: str
    keys: Keys


def store_of(scheme: str, env: Mapping[str, str]) -> Store:
    """The store that the variables mean; keys in them win over those in ~/.aws/credentials."""
    keys = Keys(
        _first(env, "ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
        _first(env, "SECRET_KEY", "AWS_SECRET_ACCESS_KEY"),
        _first(env, "AWS_SESSION_TOKEN"),
    )
    if scheme == "gs":
        given = _first(env, "STORAGE_EMULATOR_HOST").rstrip("/")
        if given and "://" not in given:
            given = "http://" + given
        return Store(given or _GOOGLE, "auto", keys)
    region = _first(env, "CLOUD_REGION", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    given = _first(env, "S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    endpoint = given.rstrip("/") or "https://s3.{}.amazonaws.com".format(region)
    return Store(endpoint, region, keys if keys.access else _kept_keys(env))


def _first(env: Mapping[str, str], *names: str) -> str:
    return next((env[name] for name in names if env.get(name)), "")


def _kept_keys(env: Mapping[str, str]) -> Keys:
    """Keys of the file that all of AWS's tools read."""
    reader = configparser.RawConfigParser()
    try:
        reader.read(env.get("AWS_SHARED_CREDENTIALS_FILE") or os.path.expanduser("~/.aws/credentials"))
        table = dict(reader.items(env.get("AWS_PROFILE") or "default"))
    except configparser.Error:
        return Keys()
    names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    return Keys(*(table.get(name, "") for name in names))


def sign(
    store: Store, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], digest: str, now: str
) -> Dict[str, str]:
    """The headers of a signed request.

    Args:
        store: where it goes, and whose keys sign.
        method: GET, HEAD, PUT or POST.
        path: the path, quoted.
        query: its parameters.
        headers: further headers that are signed, names in lower case.
        digest: SHA-256 of the body, in hexadecimal digits.
        now: the time as `20260131T235959Z`.
    """
    signed = dict(headers, host=urllib.parse.urlsplit(store.endpoint).netloc)
    signed.update({"x-amz-content-sha256": digest, "x-amz-date": now})
    if not store.keys.access:
        return signed
    if store.keys.session:
        signed["x-amz-security-token"] = store.keys.session
    names = ";".join(sorted(signed))
    told = "".join("{}:{}\n".format(name, signed[name].strip()) for name in sorted(signed))
    canonical = "\n".join([method, path, quote_query(query), told, names, digest])
    scope = "{}/{}/s3/aws4_request".format(now[:8], store.region)
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + store.keys.secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    signed["authorization"] = "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}".format(
        store.keys.access, scope, names, signature
    )
    return signed


def quote_query(query: Mapping[str, str]) -> str:
    """Parameters as they are signed: sorted, everything but letters, digits and `-._~` in hexadecimal."""
    pairs = sorted((_quote(name), _quote(value)) for name, value in query.items())
    return "&".join("{}={}".format(name, value) for name, value in pairs)


def _quote(text: str) -> str:
    return urllib.parse.quote(text.encode("utf-8", "surrogateescape"), safe="-._~")


class Client:
    """Requests to one store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def ask(
        self,
        method: str,
        bucket: str,
        key: str = "",
        query: Optional[Mapping[str, str]] = None,
        headers: Optional[Mapping[str, str]] = None,
        body: Optional[bytes] = None,
    ) -> web.Answer:
        """One request, sent again to the region that the bucket says it is in.

        Raises:
            Problem: the store does not answer, or refuses.
        """
        try:
            return self._ask(method, bucket, key, query or {}, headers or {}, body)
        except web.Refused as error:
            region = error.headers.get("x-amz-bucket-region", "")
            if error.status not in (301, 307, 400) or region in ("", self._store.region):
                raise _in_words(error) from None
            self._move_to(region)
        try:
            return self._ask(method, bucket, key, query or {}, headers or {}, body)
        except web.Refused as error:
            raise _in_words(error) from None

    def _move_to(self, region: str) -> None:
        """Follow a bucket to its region."""
        endpoint = self._store.endpoint.replace(".{}.".format(self._store.region), ".{}.".format(region))
        self._store = Store(endpoint, region, self._store.keys)

    def _ask(
        self,
        method: str,
        bucket: str,
        key: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Optional[bytes],
    ) -> web.Answer:
        quoted = urllib.parse.quote(key.encode("utf-8", "surrogateescape"), safe="-._~/")
        path = "/{}{}".format(bucket, "/" + quoted if key else "")
        digest = hashlib.sha256(body).hexdigest() if body is not None else EMPTY
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = sign(self._store, method, path, query, headers, digest, now)
        signed.pop("host")
        url = self._store.endpoint + path + ("?" + quote_query(query) if query else "")
        return web.ask(url, method, signed, body)

    def objects(self, bucket: str, prefix: str) -> Iterator[Tuple[str, int, str]]:
        """Key, size and ETag of every object whose key begins so."""
        token = ""
        while True:
            query = {"list-type": "2", "prefix": prefix}
            if token:
                query["continuation-token"] = token
            answer = self.ask("GET", bucket, query=query)
            root = ElementTree.fromstring(answer.read())  # noqa: S314  of the store that the keys are sent to
            for item in (each for each in root if _tag(each) == "Contents"):
                facts = {_tag(each): each.text or "" for each in item}
                yield facts.get("Key", ""), int(facts.get("Size", "0")), facts.get("ETag", "").strip('"')
            facts = {_tag(each): each.text or "" for each in root}
            token = facts.get("NextContinuationToken", "") if facts.get("IsTruncated") == "true" else ""
            if not token:
                return


def _tag(element: "ElementTree.Element") -> str:
    return element.tag.rpartition("}")[2]


def _in_words(error: web.Refused) -> Problem:
    """The refusal with the store's own code, for example InvalidAccessKeyId."""
    try:
        facts = {_tag(each): each.text or "" for each in ElementTree.fromstring(error.said)}  # noqa: S314
    except ElementTree.ParseError:
        facts = {}
    code = facts.get("Code", "")
    denied = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AccessDenied")
    kind = "credentials" if code in denied else "not-found" if code.startswith("NoSuch") else error.kind
    return Problem(kind, "{}{}".format(error.text, " ({})".format(code) if code else ""))


class S3(Source):
    """An object, or all objects below a prefix."""

    def __init__(self, uri: str, env: Mapping[str, str]) -> None:
        scheme, _, rest = uri.partition("://")
        self._uri = uri
        self._bucket, _, self._key = rest.partition("/")
        self._client = Client(store_of(scheme, env))

    def find(self) -> Found:
        """The object of that very key, else what lies below it."""
        if self._key and not self._key.endswith("/"):
            one = self._object()
            if one:
                return Found("file", [one])
        below = self._key if self._key.endswith("/") or not self._key else self._key + "/"
        entries: List[Entry] = [
            Entry(key[len(below) :], size, _stamp(etag), key)
            for key, size, etag in self._client.objects(self._bucket, below)
            if not key.endswith("/")  # what consoles make for an empty folder
        ]
        if not entries:
            raise Problem("not-found", "{}: there is no such object, and none below it".format(self._uri))
        return Found("directory", entries)

    def _object(self) -> Optional[Entry]:
        try:
            answer = self._client.ask("HEAD", self._bucket, self._key)
        except Problem as problem:
            if problem.kind in ("not-found", "credentials"):  # whoever may not list is told 403 for what is not there
                return None
            raise
        answer.close()
        size, etag = answer.headers.get("content-length", ""), answer.headers.get("etag", "").strip('"')
        sealed = answer.headers.get("x-amz-server-side-encryption", "") in _SSE
        return Entry("", int(size) if size.isdigit() else -1, "etag:" + etag if sealed else _stamp(etag), self._key)

    def open(self, entry: Entry, offset: int) -> Reader:
        """The object's bytes from there on, as long as it is the one that was found."""
        headers = {"range": "bytes={}-".format(offset)} if offset else {}
        if entry.stamp.partition(":")[2]:
            headers["if-match"] = '"{}"'.format(entry.stamp.partition(":")[2])
        answer = self._client.ask("GET", self._bucket, entry.handle, headers=headers)
        if offset and answer.status != 206:
            web.skip(answer, offset)
        return answer


def _stamp(etag: str) -> str:
    """An ETag is the content's MD5, unless the object came in parts (`<hex>-<count>`)."""
    plain = len(etag) == 32 and all(digit in "0123456789abcdef" for digit in etag)
    return ("md5:" if plain else "etag:") + etag
