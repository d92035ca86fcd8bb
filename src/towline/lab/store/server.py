"""The object store's process: `server.py ADDRESS PORT KEYS`, run by a Python that has moto.

Requests must be signed with the keys that it writes into the file KEYS; signatures are checked. What is stored is gone
with the process.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

NAME = "lab-store"
_POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
_UNCHECKED = 3
"""Requests before keys count: those that make the user, its rights and its keys."""
_DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def main(address: str, port: int, keys: Path) -> None:
    """Serve until the end of the process."""
    # The kernel's short name of the process, by which the lab finds it (prctl(2), PR_SET_NAME).
    ctypes.CDLL(None).prctl(15, NAME.encode(), 0, 0, 0)
    os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = str(_UNCHECKED)
    os.environ["S3_IGNORE_SUBDOMAIN_BUCKETNAME"] = "1"  # store.lab is the store, and no bucket of the host lab
    import threading

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server(address, port, signed_only(DomainDispatcherApplication(create_backend_app)), threaded=True)
    threading.Thread(target=_write_keys, args=(f"http://{address}:{port}", keys), daemon=True).start()
    server.serve_forever()


def signed_only(application: Any) -> Application:
    """The application, with the refusal that S3 has for requests without keys; moto breaks on them."""

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if not environ.get("HTTP_AUTHORIZATION"):
            start("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(_DENIED)))])
            return [_DENIED]
        return application(environ, start)

    return answer


def _write_keys(endpoint: str, keys: Path) -> None:
    import boto3

    access = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    client = cast("Any", boto3).client("iam", endpoint_url=endpoint, **access)
    client.create_user(UserName="lab")
    client.put_user_policy(UserName="lab", PolicyName="all", PolicyDocument=_POLICY)
    made = client.create_access_key(UserName="lab")["AccessKey"]
    keys.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = keys.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text(f"{made['AccessKeyId']} {made['SecretAccessKey']}\n")
    fresh.replace(keys)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
