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
@click.option("--untried", is_flag=True, help="Write the key without asking the registry whether it takes it.")
@cluster_option
@json_option
def login(*, host: str, user: str, untried: bool, cluster: str | None, as_json: bool) -> None:
    """Write a registry's key into the cluster's Enroot credentials, once the registry has taken it.

    The key is read from stdin when that is a pipe or a file, else for nvcr.io from the variable NGC_KEY, else asked
    for. It never stands in an argument list, a log or an answer. The registry is asked from the login host; one that
    refuses the key leaves the file as it was, and one that cannot be asked does not keep the key from being written.
    What the key opens only an image shows: `towline registry check IMAGE`.
    """
    from towline.engine import registry as engine

    done = run(engine.login(cluster, host, _key(host), user, tried=not untried))
    if as_json:
        machines = [{"machine": machine, "user": name} for machine, name in done.machines]
        about = {"file": done.file, "user": done.user, "machines": machines}
        print_document({"registry": {**about, "key": done.verdict.value, "why": done.why}})
        return
    print(f"{done.file} on the cluster has the key of {done.user} for {host} now.")
    if done.why:
        print(f"It could not be tried: {done.why}.\nAn image shows whether it is right: towline registry check IMAGE")
    else:
        print(f"It is right: {host} lets {done.user} in.")


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
