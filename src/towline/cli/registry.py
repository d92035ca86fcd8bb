"""`towline registry`: the cluster's credentials for image registries."""

from __future__ import annotations

import dataclasses
import os
import sys

import click

from towline.cli.documents import print_document
from towline.cli.loop import run
from towline.cli.options import cluster_option, examples, json_option, named
from towline.models.errors import UsageError

_NGC, _NGC_KEY = "nvcr.io", "NGC_KEY"
_LOGIN = examples(
    "towline registry login nvcr.io",
    "towline registry login nvcr.io <ngc-key.txt",
    "towline registry login registry.example.org:5000 --user me",
)
_CHECK = examples("towline registry check nvcr.io/nvidia/pytorch:24.07-py3")


@click.group(
    epilog=examples("towline registry login nvcr.io", "towline registry check nvcr.io/nvidia/pytorch:24.07-py3")
)
def registry() -> None:
    """Give the cluster credentials for image registries, and see with `check` that they work for an image."""


@registry.command(epilog=_LOGIN)
@click.argument("host", metavar="HOST[:PORT]", callback=named)
@click.option("--user", metavar="NAME", default="", help="User at the registry; $oauthtoken for nvcr.io.")
@cluster_option
@json_option
def login(*, host: str, user: str, cluster: str | None, as_json: bool) -> None:
    """Write a registry's key into the cluster's Enroot credentials.

    The key is read from stdin when that is a pipe or a file, else for nvcr.io from the variable NGC_KEY, else asked
    for. It never stands in an argument list, a log or an answer. It is written and not tried, for only an image shows
    whether it opens anything: `towline registry check IMAGE` does that.
    """
    from towline.engine import registry as engine

    done = run(engine.login(cluster, host, _key(host), user))
    if as_json:
        machines = [{"machine": machine, "user": name} for machine, name in done.machines]
        print_document({"registry": {"file": done.file, "user": done.user, "machines": machines}})
        return
    print(f"{done.file} on the cluster has the key of {done.user} for {host} now.")
    print("It was not tried; this does: towline registry check IMAGE")


@registry.command(epilog=_CHECK)
@click.argument("image", metavar="IMAGE")
@cluster_option
@json_option
def check(*, image: str, cluster: str | None, as_json: bool) -> None:
    """Ask for an image's manifest from the cluster, with the cluster's credentials.

    Says which line of the credentials file was used and what came back.
    """
    from towline.engine import registry as engine

    found = run(engine.check(cluster, image))
    if as_json:
        print_document({"manifest": {**dataclasses.asdict(found), "found": found.found}})
    if error := engine.problem(found, image):
        raise error
    if not as_json:
        user = found.line.partition(" ")[2]
        used = f"as {user}, by the line for {found.line.partition(' ')[0]} in {found.file}" if user else "as anybody"
        print(f"{image} is there, {used}.\n{found.digest or found.url}")


def _key(host: str) -> str:
    if not sys.stdin.isatty() and (piped := sys.stdin.read().strip()):
        return piped
    if host == _NGC and (key := os.environ.get(_NGC_KEY, "").strip()):
        return key
    if sys.stdin.isatty():
        return str(click.prompt(f"Key for {host}", hide_input=True, err=True)).strip()
    variable = f", in the variable {_NGC_KEY}" if host == _NGC else ""
    raise UsageError(f"the key for {host} is missing", fix=f"Give it on stdin{variable}, or at a terminal.")
