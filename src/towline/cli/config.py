"""`towline config` and `towline trust`: what is configured, where it came from, and whose files may configure."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from towline.cli.documents import print_document
from towline.cli.options import cluster_option, examples, json_option, named_path
from towline.cli.output import StatusLine, table, width_of

if TYPE_CHECKING:
    from towline.engine.configuration import ShownProfile


@click.group(epilog=examples("towline config show --origin", "towline config path"))
def config() -> None:
    """Show what is configured and where it came from."""


@config.command(epilog=examples("towline config show", "towline config show --cluster alps --origin --json"))
@click.option("--origin", is_flag=True, help="Say where each value came from, defaults too.")
@cluster_option
@json_option
def show(*, origin: bool, cluster: str | None, as_json: bool) -> None:
    """Show the settings that a command would use."""
    from towline.engine.configuration import show_profile

    found = show_profile(cluster)
    if as_json:
        print_document({"config": dataclasses.asdict(found)})
        return
    for note in found.notes:
        StatusLine().say(note)
    print(_text(found, origin=origin), end="")


@config.command(epilog=examples("towline config path"))
@json_option
def path(*, as_json: bool) -> None:
    """Print the directory of the configuration files."""
    from towline.engine.configuration import config_directory

    found = str(config_directory())
    if as_json:
        print_document({"path": found})
    else:
        print(found)


@click.command(epilog=examples("towline trust", "towline trust ~/code/project", "towline trust --remove"))
@click.argument("file", metavar="[FILE]", default=".", callback=named_path)
@click.option("--remove", is_flag=True, help="No longer trust it.")
@json_option
def trust(file: Path, *, remove: bool, as_json: bool) -> None:
    """Trust a project's `towline.toml` as it is now, so that it may name clusters and commands.

    FILE is the file or a directory of the project. A change of its content ends the trust.
    """
    from towline.engine import configuration

    found = configuration.trust(file, remove=remove)
    if as_json:
        print_document({"trusted": not remove, "needs_trust": list(found.delicate)})
        return
    what = f"It sets {', '.join(found.delicate)}." if found.delicate else "Nothing in it needs that."
    print(f"{'No longer trusted' if remove else 'Trusted'}: {found.path}. {what}")


def _text(found: ShownProfile, *, origin: bool) -> str:
    shown = [each for each in found.settings if origin or each.source != "default"]
    rows = [[each.name, _value(each.value), *([each.origin] if origin else [])] for each in shown]
    rows += [[f"job: {key}", _value(value), *([found.project] if origin else [])] for key, value in found.job.items()]
    header = ["SETTING", "VALUE", *(["FROM"] if origin else [])]
    return f"cluster {found.cluster}\n\n" + table(header, rows, width=width_of(sys.stdout))


def _value(value: object) -> str:
    if value is None or value in ("", []):
        return "-"
    if isinstance(value, list):
        return ", ".join(_value(each) for each in cast("list[object]", value))
    if isinstance(value, dict):
        return " ".join(f"{key}={_value(each)}" for key, each in cast("dict[str, object]", value).items())
    return str(value)
