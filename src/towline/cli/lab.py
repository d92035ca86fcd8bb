"""`towline lab`: the real Slurm cluster for trying and testing."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time

import click

from towline.cli.options import examples

_KEPT_BY_SUDO = "TOWLINE_LAB_DIR,TOWLINE_LAB_DISK_GIB,TOWLINE_CONFIG_DIR,XDG_CONFIG_HOME"
_FAULT_EXAMPLES = examples(
    "towline lab fault list", "towline lab fault node-crash on node2", "towline lab fault all off"
)
_SHELL_EXAMPLES = examples("towline lab shell", "towline lab shell node1 -u root -- ps aux")


class _CommandAfterDashes(click.Command):
    """A command that takes everything after `--` as it is, whether or not its arguments are all there before."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[__name__] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.group(epilog=examples("towline lab up", "towline run -- hostname", "towline lab down"))
def lab() -> None:
    """A real Slurm cluster on this machine, for trying and testing.

    Debian or Ubuntu, as root or with sudo.
    """


@lab.command(epilog=examples("towline lab up", "towline lab up --install"))
@click.option("--install", is_flag=True, help="Install the distribution's packages that are missing.")
@click.option("--pyxis-plugin", metavar="PATH", help="A real Pyxis to use: its spank_pyxis.so.")
@click.option("--enroot", metavar="PATH", help="A real Enroot to use: its command, or the prefix it is installed in.")
def up(*, install: bool, pyxis_plugin: str | None, enroot: str | None) -> None:
    """Bring the lab up, or what of it is down.

    Its containers are run by stand-ins for Pyxis and Enroot unless real ones are given, each time anew.
    """
    _as_root()
    from towline.lab import Lab, RuntimeChoice, profile

    begin = time.monotonic()
    the_lab = Lab.default()
    chosen = RuntimeChoice.of(pyxis_plugin, enroot)
    changed = the_lab.up(click.echo, install=install, container_runtime=chosen)
    for note in the_lab.notes():
        click.echo(f"note: {note}")
    click.echo(f"The lab is up{'' if changed else ' already'} ({time.monotonic() - begin:.1f} s).")
    if changed:
        click.echo(f"Profile `lab` is in {profile.path()}.")


@lab.command(epilog=examples("towline lab down", "towline lab down --purge"))
@click.option("--purge", is_flag=True, help="Remove the lab's folder with its data and images, too.")
def down(*, purge: bool) -> None:
    """Take the lab down; nothing of it stays but its folder."""
    _as_root()
    from towline.lab import Lab

    begin = time.monotonic()
    Lab.default().down(purge=purge)
    click.echo(f"The lab is down ({time.monotonic() - begin:.1f} s).")


@lab.command(epilog=examples("towline lab status", "towline lab status --json"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(*, as_json: bool) -> None:
    """Show how each part and node is; exit status 1 when the lab is not wholly up."""
    _as_root()
    from towline.lab import Lab

    found = Lab.default().status()
    if as_json:
        click.echo(json.dumps(found.as_dict()))
    else:
        for part in found.parts:
            click.echo(f"{part.name:16} {part.problem or 'up'}")
        for node, state in found.nodes.items():
            click.echo(f"{node:16} {state}")
        click.echo(f"{'runtime':16} {found.runtime}")
        for fault in found.faults:
            click.echo(f"{'fault':16} {fault}")
        for note in found.notes:
            click.echo(f"note: {note}")
    raise SystemExit(0 if found.is_up else 1)


@lab.command(epilog=examples("towline lab reset"))
def reset() -> None:
    """Turn every fault off, mend what is down and cancel every job."""
    _as_root()
    from towline.lab import Lab

    begin = time.monotonic()
    Lab.default().reset(click.echo)
    click.echo(f"The lab is as new ({time.monotonic() - begin:.1f} s).")


@lab.command(epilog=_FAULT_EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="NAME|all|list")
@click.argument("action", metavar="[on|off]", type=click.Choice(["on", "off"]), required=False)
@click.argument("arguments", nargs=-1)
def fault(name: str, action: str | None, arguments: tuple[str, ...]) -> None:
    """Make something go wrong, or right again.

    `list` shows what there is and what is on; `all off` turns everything off.
    """
    _as_root()
    from towline.lab import Lab

    the_lab = Lab.default()
    if action is None and name == "list":
        _list_faults(the_lab.faults())
    elif action == "on":
        click.echo(f"{the_lab.fault_on(name, *arguments)}: on")
    elif action == "off":
        ended = the_lab.all_faults_off() if name == "all" else the_lab.fault_off(name, *arguments)
        click.echo("".join(f"{one}: off\n" for one in ended) or "Nothing was on.\n", nl=False)
    else:
        raise click.UsageError("Say what to do with it: `on` or `off`.")


def _list_faults(active: tuple[str, ...]) -> None:
    from towline.lab.faults.registry import FAULTS

    for name in sorted(FAULTS):
        arguments = FAULTS[name].usage.replace(f"{name} on", name)
        where = ", ".join(one.partition(" ")[2] or "on" for one in active if one.split(" ")[0] == name)
        click.echo(f"{arguments:32} {FAULTS[name].help}{f'  [on: {where}]' if where else ''}")


@lab.command(cls=_CommandAfterDashes, options_metavar="[-u USER]", epilog=_SHELL_EXAMPLES)
@click.argument("host", default="login1")
@click.option("-u", "--user", default="alice", show_default=True, help="A user of the cluster, or root.")
@click.pass_context
def shell(context: click.Context, host: str, user: str) -> None:
    """Open a shell on a host of the lab, or run a command: `towline lab shell node1 -u root -- ps aux`."""
    _as_root()
    from towline.lab import Lab

    command: tuple[str, ...] = context.meta[__name__]
    argv = Lab.default().command(host, command or ("bash", "-l"), user=user)
    os.execvp(argv[0], argv)  # noqa: S606 - the command's end, output and terminal are this one's


@lab.command(epilog=examples("towline lab logs", "towline lab logs -f slurmctld"))
@click.argument("part", default="")
@click.option("-f", "--follow", is_flag=True, help="Go on as the logs grow.")
def logs(part: str, *, follow: bool) -> None:
    """Show the ends of the lab's logs: all, those of a PART as `status` names it, or one by its file's name."""
    _as_root()
    from towline.lab import Lab

    files = [str(path) for path in Lab.default().logs(part)]
    argv = ["tail", "-n", "20", *(["-F"] if follow else []), "--", *files]
    os.execvp(argv[0], argv)  # noqa: S606 - as above


def _as_root() -> None:
    """Go on as root: this same command again under sudo, when it is not root already."""
    if os.geteuid() == 0:
        return
    from towline.lab import LabError

    if shutil.which("sudo") is None:
        raise LabError("The lab needs root, and there is no sudo here.", fix="Run the command as root.")
    again = "from towline.cli.main import main; raise SystemExit(main())"
    os.execvp(  # noqa: S606 - `-B`: root leaves no files in an environment that is the user's
        "sudo", ["sudo", f"--preserve-env={_KEPT_BY_SUDO}", sys.executable, "-B", "-c", again, *sys.argv[1:]]
    )
