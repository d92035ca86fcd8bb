"""Which files are known to hold secrets."""

from __future__ import annotations

import pytest

from towline.storage.secret_files import secret_by_content, secret_by_name


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "a/.env", ".env.local", ".netrc", "keys/id_ed25519", "tls/server.key", ".aws/credentials"),
        *("conf/.docker/config.json", ".ssh/config", "service-account-1.json", ".npmrc", "home/.kube/config"),
    ],
)
def test_files_of_secrets_are_known_by_name(path: str) -> None:
    assert secret_by_name(path)


@pytest.mark.parametrize(
    "path",
    [".env.example", "env", "environment.py", "id_rsa.pub", "keys.py", "keyboard.json", "a/config.json", "x.pem"],
)
def test_other_files_are_not(path: str) -> None:
    assert not secret_by_name(path)


def test_a_private_key_is_known_whatever_its_name() -> None:
    for kind in (b"", b"RSA ", b"OPENSSH ", b"ENCRYPTED ", b"EC "):
        assert secret_by_content(b"-----BEGIN " + kind + b"PRIVATE KEY-----\nMII")
    assert not secret_by_content(b"-----BEGIN CERTIFICATE-----\nMII")
    assert not secret_by_content(b"# -----BEGIN PRIVATE KEY----- is how a key begins")
