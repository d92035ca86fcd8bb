"""The lab's object store and web server, as somebody fills them who has the keys."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, cast

import boto3  # pyright: ignore[reportMissingTypeStubs]

from towline.lab import Lab
from towline.lab.layout import CTL, STORE_PORT
from towline.lab.store.daemon import keys_file

ENDPOINT = f"http://store.lab:{STORE_PORT}"


@dataclass(frozen=True)
class Store:
    """A bucket of its own."""

    client: Any
    bucket: str
    access: str
    secret: str

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs to have its jobs read from the bucket."""
        return {"TOWLINE_S3_ENDPOINT": ENDPOINT, "ACCESS_KEY": self.access, "SECRET_KEY": self.secret}

    def put(self, key: str, content: bytes) -> str:
        """Write an object; its URI."""
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)
        return f"s3://{self.bucket}/{key}"

    def get(self, key: str) -> bytes:
        """An object's content."""
        return bytes(self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read())

    def remove(self, key: str) -> None:
        """Take an object away."""
        self.client.delete_object(Bucket=self.bucket, Key=key)


def open_store(lab: Lab) -> Store:
    """The lab's store with a new bucket."""
    access, secret = keys_file(lab.paths).read_text().split()
    client = cast("Any", boto3).client(
        "s3",
        endpoint_url=f"http://{CTL.address}:{STORE_PORT}",
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        region_name="us-east-1",
    )
    bucket = f"labtest-{secrets.token_hex(4)}"
    client.create_bucket(Bucket=bucket)
    return Store(client, bucket, access, secret)
