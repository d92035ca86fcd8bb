"""Files that are known to hold secrets, by their names and by how they begin."""

from __future__ import annotations

import fnmatch

_EXAMPLES = (".example", ".sample", ".template", ".dist")
_NAMES = (
    *(".env", ".env.*", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"),
    *("*.key", "*.p12", "*.pfx", "*.kdbx", "*.jks", "*.ppk", "*.keytab", ".vault_pass*"),
    *(".dockercfg", ".s3cfg", ".boto"),
    *("service-account*.json", "service_account*.json", "application_default_credentials.json"),
)
_PATHS = (
    *("*.aws/credentials", "*.docker/config.json", "*.kube/config", "*.ngc/config", "*.config/gcloud/*"),
    *("*.huggingface/token", "*.cache/huggingface/token", "*enroot/.credentials", "*.ssh/*"),
)
_MARK = b"PRIVATE KEY"
HEAD = 100
"""Bytes of a file's beginning that tell a private key."""


def secret_by_name(path: str) -> bool:
    """Whether a file of that name is known to hold secrets."""
    name = path.rpartition("/")[2]
    if name.endswith(_EXAMPLES):
        return False
    return any(fnmatch.fnmatchcase(name, each) for each in _NAMES) or any(
        fnmatch.fnmatchcase(path, each) for each in _PATHS
    )


def secret_by_content(head: bytes) -> bool:
    """Whether a file that begins so is a private key (RFC 7468, and OpenSSH's and OpenPGP's own)."""
    return head.startswith(b"-----BEGIN ") and _MARK in head[:HEAD]
