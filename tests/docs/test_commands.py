"""Every command line in the documentation is one that the command line takes, and every option is documented."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from tests.docs.pages import ROOT, Command, inline_commands, shown_commands
from towline.cli.app import app

PAGE_OF = {
    "run": "run",
    "ps": "watch",
    "status": "watch",
    "logs": "watch",
    "exec": "watch",
    "gpus": "watch",
    "cancel": "watch",
    "wait": "watch",
    "results": "results",
    "doctor": "doctor",
    "setup": "configuration",
}
AT_THE_ROOT = ("test", "demo", "bench", "chaos")


def towline(commands: list[Command]) -> list[Command]:
    return [command for command in commands if "towline" in [word.rpartition("/")[2] for word in command.words[:2]]]


def after_towline(command: Command) -> list[str]:
    """The arguments, without what the shell takes: redirections, pipes, the next command."""
    words = [word.rpartition("/")[2] if index < 2 else word for index, word in enumerate(command.words)]
    found = words[words.index("towline") + 1 :]
    end = next((index for index, word in enumerate(found) if re.fullmatch(r"[|&;<>]+.*|2>.*", word)), len(found))
    return found[:end]


def leaf(arguments: list[str]) -> tuple[click.Command, list[str], click.Context]:
    """The command that the arguments name, and what is left for it."""
    context = click.Context(app, info_name="towline")
    command: click.Command = app
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no command {rest[0]!r}"
        command, context = found, click.Context(found, info_name=rest[0], parent=context)
        rest = rest[1:]
    return command, rest, context


@pytest.mark.parametrize("command", towline(shown_commands()), ids=str)
def test_shown_commands_are_taken(command: Command) -> None:
    arguments = after_towline(command)
    if arguments in ([], ["--help"]):
        return
    found, rest, context = leaf(arguments)
    assert not isinstance(found, click.Group)
    if "--help" not in rest:
        found.make_context(context.info_name, rest, parent=context.parent)


@pytest.mark.parametrize("command", towline(inline_commands()), ids=str)
def test_options_named_in_the_text_exist(command: Command) -> None:
    found, rest, _ = leaf(after_towline(command))
    own = rest[: rest.index("--")] if "--" in rest else rest
    known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    named = [word.partition("=")[0] for word in own if word.startswith("-")]
    assert [name for name in named if name not in {*known, "--help", "-h", "--version"}] == []


def options() -> Iterator[tuple[str, str]]:
    for name, page in PAGE_OF.items():
        command = leaf([name])[0]
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield page, max(parameter.opts, key=len)


@pytest.mark.parametrize(("page", "option"), sorted(set(options())))
def test_every_option_is_documented(page: str, option: str) -> None:
    assert f"`{option}" in (ROOT / "docs" / f"{page}.md").read_text()


@pytest.mark.parametrize("command", [each for each in shown_commands() if each.words[0].startswith("./")], ids=str)
def test_commands_at_the_root_exist(command: Command) -> None:
    script = ROOT / command.words[0]
    assert script.name in AT_THE_ROOT
    assert script.stat().st_mode & 0o111
