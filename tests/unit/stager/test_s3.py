"""Requests to object stores: signed as botocore signs them, and what a store's answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.stager.answers import Quiet, served
from towline.stager import send
from towline.stager.problems import Problem
from towline.stager.s3 import EMPTY, S3, Keys, Store, quote_query, sign, store_of

KEYS = Keys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "token")
STORE = Store("https://store.example.org:9000", "eu-north-1", KEYS)
NOW = "20260131T235959Z"


def botocores(query: dict[str, str], path: str) -> str:
    """The signature of botocore, which all of AWS's tools use."""
    from botocore.auth import S3SigV4Auth  # pyright: ignore[reportMissingTypeStubs]
    from botocore.awsrequest import AWSRequest  # pyright: ignore[reportMissingTypeStubs]
    from botocore.credentials import Credentials  # pyright: ignore[reportMissingTypeStubs]

    signer = cast("Any", S3SigV4Auth)(Credentials(*KEYS), "s3", STORE.region)
    url = f"{STORE.endpoint}{path}" + (f"?{quote_query(query)}" if query else "")
    headers = {"x-amz-content-sha256": EMPTY, "x-amz-date": NOW, "x-amz-security-token": KEYS.session}
    request = cast("Any", AWSRequest)(method="GET", url=url, headers=headers)
    request.context["timestamp"] = NOW
    text = signer.string_to_sign(request, signer.canonical_request(request))
    return str(signer.signature(text, request))


@settings(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=8), max_size=3))
def test_signatures_are_those_of_botocore(query: dict[str, str]) -> None:
    path = "/bucket/a%20b/%C3%A9+.txt".replace("+", "%2B")
    signed = sign(STORE, "GET", path, query, {}, EMPTY, NOW)
    assert signed["authorization"].endswith(f"Signature={botocores(query, path)}")


def test_without_keys_nothing_is_signed() -> None:
    signed = sign(STORE._replace(keys=Keys()), "GET", "/b", {}, {}, EMPTY, NOW)
    assert "authorization" not in signed


@pytest.mark.parametrize(
    ("env", "endpoint", "region", "access"),
    [
        ({}, "https://s3.us-east-1.amazonaws.com", "us-east-1", "kept"),
        ({"AWS_PROFILE": "other"}, "https://s3.us-east-1.amazonaws.com", "us-east-1", "others"),
        ({"CLOUD_REGION": "eu-west-3"}, "https://s3.eu-west-3.amazonaws.com", "eu-west-3", "kept"),
        ({"S3_ENDPOINT_URL": "http://s:1/", "ACCESS_KEY": "a", "SECRET_KEY": "s"}, "http://s:1", "us-east-1", "a"),
        ({"AWS_ACCESS_KEY_ID": "b", "AWS_ENDPOINT_URL": "http://t"}, "http://t", "us-east-1", "b"),
    ],
)
def test_which_store_and_whose_keys(
    env: dict[str, str], endpoint: str, region: str, access: str, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[default]\naws_access_key_id = kept\naws_secret_access_key = x\n"
        "[other]\naws_access_key_id = others\naws_secret_access_key = y\n"
    )
    found = store_of("s3", {**env, "AWS_SHARED_CREDENTIALS_FILE": str(file)})
    assert (found.endpoint, found.region, found.keys.access) == (endpoint, region, access)


class Answers(Quiet):
    """A store that answers as it is told."""

    answers: dict[str, tuple[int, dict[str, str], str]] = {}  # noqa: RUF012  set by each test
    asked: list[tuple[str, str, str]] = []  # noqa: RUF012
    bodies: list[bytes] = []  # noqa: RUF012

    def do_GET(self) -> None:  # noqa: N802
        self._answer(send=True)

    def do_PUT(self) -> None:  # noqa: N802
        self.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(send=True)

    def do_HEAD(self) -> None:  # noqa: N802
        self._answer(send=False)

    def _answer(self, *, send: bool) -> None:
        key = unquote(self.path).replace("?list-type=2&prefix=", "?")
        self.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
        status, headers, body = self.answers.get(f"{self.command} {key}", (404, {}, ""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(
            "Content-Length", headers.get("Content-Length", str(len(body))) if not send else str(len(body))
        )
        self.end_headers()
        if send:
            self.wfile.write(body.encode())


@pytest.fixture
def store() -> Iterator[str]:
    Answers.answers, Answers.asked = {}, []
    with served(Answers) as url:
        yield url


def source(store: str, uri: str) -> S3:
    return S3(uri, {"S3_ENDPOINT_URL": store, "ACCESS_KEY": "a", "SECRET_KEY": "s"})


def page(*objects: tuple[str, int, str], next_page: str = "") -> str:
    told = "".join(f'<Contents><Key>{k}</Key><Size>{s}</Size><ETag>"{e}"</ETag></Contents>' for k, s, e in objects)
    more = (
        f"<IsTruncated>true</IsTruncated><NextContinuationToken>{next_page}</NextContinuationToken>"
        if next_page
        else ""
    )
    return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{more}{told}</ListBucketResult>'


def test_a_listing_has_all_pages_and_no_folder_markers(store: str) -> None:
    md5 = "0" * 32
    Answers.answers = {
        "GET /sets?train/": (200, {}, page(("train/", 0, md5), ("train/a", 1, md5), next_page="t")),
        "GET /sets?continuation-token=t&list-type=2&prefix=train/": (200, {}, page(("train/b/c", 2, "1-2"))),
    }
    found = source(store, "s3://sets/train").find()
    assert found.kind == "directory"
    assert [(each.path, each.size, each.stamp) for each in found.entries] == [
        ("a", 1, f"md5:{md5}"),
        ("b/c", 2, "etag:1-2"),
    ]


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (403, "<Error><Code>InvalidAccessKeyId</Code></Error>", "credentials", "InvalidAccessKeyId"),
        (404, "<Error><Code>NoSuchBucket</Code></Error>", "not-found", "NoSuchBucket"),
        (200, page(), "not-found", "none below it"),
        (503, "busy", "network", "503"),
    ],
)
def test_what_a_stores_refusal_means(store: str, status: int, body: str, kind: str, words: str) -> None:
    Answers.answers = {"GET /sets?train/": (status, {}, body)}
    with pytest.raises(Problem) as refused:
        source(store, "s3://sets/train").find()
    assert refused.value.kind == kind
    assert words in refused.value.text


def test_keys_do_not_follow_a_redirection(store: str) -> None:
    """A store may send its clients on to a place that is not its own."""
    Answers.answers = {
        "GET /sets/a": (302, {"Location": f"{store}/elsewhere"}, ""),
        "HEAD /sets/a": (200, {"Content-Length": "5", "ETag": '"1-2"'}, ""),
        "GET /elsewhere": (200, {}, "hello"),
    }
    one = source(store, "s3://sets/a")
    found = one.find()
    assert found.kind == "file"
    reader = one.open(found.entries[0], 0)
    assert reader.read() == b"hello"
    reader.close()
    keys = {path: keys for _, path, keys in Answers.asked}
    assert keys["/sets/a"]
    assert not keys["/elsewhere"]


def test_an_upload_is_sent_again_when_the_store_did_not_answer(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "PAUSES", (0.0,))
    env = {"S3_ENDPOINT_URL": store, "ACCESS_KEY": "a", "SECRET_KEY": "s"}
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w").write_bytes(b"weights")
    (tmp_path / "model" / "link").symlink_to("/etc/passwd")
    Answers.answers = {"PUT /out/7/w": (503, {}, "busy")}
    with pytest.raises(Problem, match="503"):
        send.send(str(tmp_path / "model"), "s3://out/7", env)
    assert [path for method, path, _ in Answers.asked if method == "PUT"] == ["/out/7/w"] * 2
    Answers.answers = {"PUT /out/7/w": (200, {}, "")}
    assert send.send(str(tmp_path / "model"), "s3://out/7/", env) == (1, 7)
    assert Answers.bodies[-1] == b"weights"


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [("", "https://storage.googleapis.com"), ("store:1", "http://store:1"), ("https://store/", "https://store")],
)
def test_googles_store_is_elsewhere_where_its_own_variable_says_so(given: str, endpoint: str) -> None:
    assert store_of("gs", {"STORAGE_EMULATOR_HOST": given}).endpoint == endpoint
