"""The group of all commands: each is imported when it is used."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from typing import cast

import click

from towline.cli.commands import COMMANDS, INTRODUCTION, overview
from towline.cli.guard import guarded
from towline.cli.options import CONTEXT, JSON_KEY


class LazyGroup(click.Group):
    """Knows its commands by name and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: D102
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: D102
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def resolve_command(  # noqa: D102
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """The same text that is printed without importing click."""
        return overview().rstrip("\n")


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from towline.cli.version import print_version

        print_version()
        context.exit()


@click.group(cls=LazyGroup, help=INTRODUCTION, context_settings=CONTEXT)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
def app() -> None:
    """The `towline` command."""


def execute(args: list[str]) -> int:
    """Run the command line and return its exit status."""
    if "_TOWLINE_COMPLETE" in os.environ:
        app.main(args, prog_name="towline")
    _tolerate_narrow_encodings(sys.stdout)
    contexts: list[click.Context] = []

    def action() -> None:
        with app.make_context("towline", list(args)) as context:
            contexts.append(context)
            app.invoke(context)

    return guarded(action, json=lambda: _wants_json(contexts, args))


def _tolerate_narrow_encodings(stream: object) -> None:
    # A file name that the locale cannot spell is no reason to fail.
    if isinstance(stream, io.TextIOWrapper):
        cast("io.TextIOWrapper", stream).reconfigure(errors="backslashreplace")


def _wants_json(contexts: list[click.Context], args: list[str]) -> bool:
    for context in contexts:
        if JSON_KEY in context.meta:
            return bool(context.meta[JSON_KEY])
    # The command line could not be parsed, so its words have to do.
    own = args[: args.index("--")] if "--" in args else args
    return "--json" in own
