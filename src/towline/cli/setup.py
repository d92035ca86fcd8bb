"""`towline setup`: a profile that works, from a few answers."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from towline.cli.doctor import findings_text
from towline.cli.guard import Ended
from towline.cli.loop import asking, run
from towline.cli.options import examples
from towline.cli.output import StatusLine
from towline.cli.terminal import clean
from towline.models.errors import AccessRefused, ConfigError, RemoteFault, Unreachable, UsageError
from towline.models.plan import Verdict

if TYPE_CHECKING:
    from towline.engine.doctor.facts import Facts, Finding
    from towline.engine.setup import Draft, NewHostKeys, Site

_EXAMPLES = examples(
    "towline setup",
    "towline setup alps --host login1.alps.example.org,login2.alps.example.org --user me --partition gpu",
    "towline setup alps --host alps --key ~/.ssh/id_alps --root /scratch/me/towline --accept-host-keys --no-input",
)


@dataclass(frozen=True)
class Manner:
    """How a setup is carried out.

    Attributes:
        ask: whether questions may be asked.
        yes: whether what would be asked for consent is done without asking.
        accept_host_keys: whether unknown host keys are taken without asking.
        make_key, install_key: likewise for the key pair and the account on the cluster.
        default, force: see `towline.engine.setup.save`.
        alias: name of the `Host` block to write; empty for none.
    """

    ask: bool
    yes: bool
    accept_host_keys: bool
    make_key: bool
    install_key: bool
    default: bool
    force: bool
    alias: str


@click.command(epilog=_EXAMPLES)
@click.argument("name", default="")
@click.option("--user", default="", metavar="NAME", help="User on the login hosts.")
@click.option("--host", default="", metavar="HOST[,HOST…]", help="Login hosts, or aliases of ~/.ssh/config, in order.")
@click.option("--port", type=click.INT, metavar="N", help="SSH port; ~/.ssh/config decides when it is not given.")
@click.option("--key", default="", metavar="FILE", help="Private key; without one, ssh chooses.")
@click.option("--known-hosts", default="", metavar="FILE", help="File of host keys in place of ~/.ssh/known_hosts.")
@click.option("--partition", default="", metavar="NAME", help="Partition of jobs that name none.")
@click.option("--account", default="", metavar="NAME", help="Slurm account; found when there is only one.")
@click.option("--root", default="", metavar="DIR", help="Directory of yours on the shared file system; found else.")
@click.option("--image", default="", metavar="IMAGE", help="Image of jobs that name none.")
@click.option("--setup", "setup_line", default="", metavar="LINE", help="Shell line that makes Slurm available there.")
@click.option("--make-key", is_flag=True, help="Make the key pair when there is none, without asking.")
@click.option("--install-key", is_flag=True, help="Put the public key on the cluster; ssh asks for the password.")
@click.option("--accept-host-keys", is_flag=True, help="Take unknown host keys without asking; changed ones never.")
@click.option("--alias", default="", metavar="NAME", help="Also write a `Host` of that name into ~/.ssh/config.")
@click.option("--default", is_flag=True, help="Make it the default cluster.")
@click.option("--force", is_flag=True, help="Write over the profile of that name.")
@click.option("--yes", is_flag=True, help="Do without asking what would be asked for consent.")
@click.option("--no-input", is_flag=True, help="Never ask; what is missing and cannot be found is an error.")
def setup(
    *, name: str, user: str, host: str, port: int | None, key: str, known_hosts: str, partition: str, account: str,
    root: str, image: str, setup_line: str, make_key: bool, install_key: bool, accept_host_keys: bool, alias: str,
    default: bool, force: bool, yes: bool, no_input: bool,
) -> None:  # fmt: skip
    """Describe a cluster: answers a few questions, finds out the rest, and checks everything.

    Asks for user, login hosts, key and partition; for account and directory only when the site leaves a choice. NAME
    is the profile's name, else the cluster's own.
    """
    from towline.engine.setup import Draft

    ask = not no_input and sys.stdin.isatty()
    manner = Manner(ask, yes, accept_host_keys or yes, make_key or yes, install_key, default, force, alias)
    hosts = tuple(part.strip() for part in host.split(",") if part.strip())
    draft = Draft(
        name, hosts, user, port, _file(key), _file(known_hosts), partition, account, root, image, setup_line
    )  # fmt: skip
    status = run(_setup(draft, manner))
    if status:
        raise Ended(status)


async def _setup(draft: Draft, manner: Manner) -> int:
    from towline.engine import setup as engine

    line = StatusLine()
    draft = _who_and_where(draft, manner)
    draft = await _choose_key(draft, manner)
    await _host_keys(draft, manner)
    line.update(f"looking at {', '.join(draft.hosts)}")
    facts = await _enter(draft, manner)
    site = await engine.look_around(draft, facts)
    line.clear()
    draft = _fill_in(draft, site, manner)
    draft, findings = await engine.settle(draft, facts)
    if wrong := engine.wrong_values(draft, findings):
        print(findings_text(wrong), end="")
        raise UsageError("nothing was written", why="The checks above fail.", fix="Run it again with other values.")
    path = engine.profile_path(draft.name)
    print(f"{path}:\n\n{engine.profile_text(draft)}")
    if not _may(manner, "Write this profile?", manner.yes or not manner.ask):
        raise UsageError("nothing was written", fix="Run it again with other answers.")
    engine.save(draft, default=manner.default, replace_it=manner.force)
    if manner.alias:
        print(f"Host {manner.alias} is in {engine.write_alias(draft, manner.alias, Path.home())}.\n")
    return _conclude(draft, findings)


def _conclude(draft: Draft, findings: Sequence[Finding]) -> int:
    from towline.engine.doctor.checks import exit_status

    print(findings_text(findings), end="")
    status = exit_status(findings)
    if not status:
        image = "" if draft.image else " --image IMAGE"
        if image:
            print("\nThe profile names no image: each job needs --image, or repeat this with --image and --force.")
        print(f"\nTry it: towline run --cluster {draft.name}{image} --dry-run -- hostname")
    return status


def _who_and_where(draft: Draft, manner: Manner) -> Draft:
    hosts = draft.hosts
    if not hosts:
        text = _answer(manner, "Login hosts (names or aliases of ~/.ssh/config, with commas)", "--host")
        hosts = tuple(part.strip() for part in text.split(",") if part.strip())
    user = draft.user or (_answer(manner, "User there", "--user", getpass.getuser()) if manner.ask else "")
    draft = replace(draft, hosts=hosts, user=user)
    draft.profile()
    return draft


async def _choose_key(draft: Draft, manner: Manner) -> Draft:
    """The draft with a key that is there; without one when ssh finds its own."""
    from towline.engine import setup as engine

    if draft.key and Path(draft.key).exists():  # noqa: ASYNC240
        return draft
    if not draft.key and (engine.own_keys(Path.home()) or await engine.has_agent_keys()):
        return draft
    path = Path(draft.key) if draft.key else Path.home() / ".ssh" / "id_ed25519"
    if not _may(manner, f"There is no key {path}. Make one (without a passphrase)?", manner.make_key):
        if draft.key:
            raise ConfigError(f"there is no key {path}", fix="Name another with --key, or give --make-key.")
        if manner.ask and (key := _optional("Private key to use (empty: ssh chooses)")):
            return await _choose_key(replace(draft, key=_file(key)), manner)
        return draft
    public = await engine.make_key(path, f"towline {getpass.getuser()}")
    print(f"Made {path}. Its public key:\n{public}\n")
    return replace(draft, key=str(path))


async def _host_keys(draft: Draft, manner: Manner) -> None:
    from towline.engine import setup as engine

    for new in await engine.new_host_keys(draft):
        if not new.keys:
            continue
        print(_shown(new))
        if not _may(manner, "Is that the host's fingerprint, as the site tells it?", manner.accept_host_keys):
            raise AccessRefused(
                f"the host key of {new.host} is not known",
                why="It was not taken.",
                fix="If it stands in a file of yours, name that with --known-hosts FILE. Else compare the "
                "fingerprint above with the site's, then answer yes or give --accept-host-keys.",
            )
        engine.take_host_keys(new)


def _shown(new: NewHostKeys) -> str:
    lines = [f"{new.host} shows these host keys, which are not known here:"]
    return "\n".join([*lines, *(f"  {key.kind} {key.fingerprint}" for key in new.keys)])


async def _enter(draft: Draft, manner: Manner) -> Facts:
    """Log in, putting the key on the cluster first where that is wanted."""
    from towline.engine import setup as engine
    from towline.engine.doctor.checks import examine

    facts = await engine.way_in(draft)
    question = "The cluster does not know the key. Put it there (ssh asks for your password)?"
    if engine.login_refused(facts) and draft.key and _may(manner, question, manner.install_key):
        await engine.install_key(draft)
        facts = await engine.way_in(draft)
    if not facts.reached or not (facts.answer and facts.answer.has("slurm")):
        failed = [each for each in examine(facts) if each.verdict is Verdict.FAILS]
        before = [each for each in failed if each.id not in ("root", "partition", "account")]
        print(findings_text(before or failed), end="")
        error = AccessRefused if engine.login_refused(facts) else RemoteFault if facts.reached else Unreachable
        raise error(
            "the cluster cannot be used yet",
            why="The checks above fail.",
            fix="Do what they say and run `towline setup` again.",
        )
    return facts


def _fill_in(draft: Draft, site: Site, manner: Manner) -> Draft:
    partitions = [part.name for part in site.partitions]
    partition = draft.partition or site.default_partition
    if not draft.partition and manner.ask and len(partitions) > 1:
        partition = _answer(manner, f"Partition ({', '.join(partitions)})", "--partition", partition)
    account = draft.account
    if not account and len(site.accounts) > 1 and manner.ask:
        account = _answer(manner, f"Account ({', '.join(site.accounts)})", "--account", site.accounts[0])
    if not account and site.needs_account:
        account = _needed_account(site, manner)
    return replace(
        draft,
        name=draft.name or _word(site.cluster) or "cluster",
        partition=partition,
        account=account,
        root=draft.root or _root(site, manner),
    )


def _needed_account(site: Site, manner: Manner) -> str:
    """The account that Slurm wants to hear; it is asked for only where there is no telling which."""
    if len(site.accounts) == 1:
        return site.accounts[0]
    if not manner.ask and site.accounts:
        raise UsageError(
            "--account is missing",
            why=f"Slurm refuses jobs that name no account. Yours are: {', '.join(site.accounts)}.",
            fix="Give one of them with --account.",
        )
    return _answer(manner, "Account (Slurm refuses jobs that name none)", "--account")


def _root(site: Site, manner: Manner) -> str:
    found = [f"{room.path}/towline" for room in site.roots]
    if len(found) > 1 and manner.ask:
        for room in site.roots:
            free = f"{room.free_kib / (1 << 20):.0f} GiB free" if room.free_kib is not None else "space not known"
            print(f"  {clean(room.path)}  {free} ({room.kind})")
        return _answer(manner, "Directory for jobs, on the file system that all nodes share", "--root", found[0])
    if not found:
        return _answer(manner, "Directory for jobs, on the file system that all nodes share", "--root")
    return found[0]


def _word(text: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in "_.-") else "-" for char in text).lstrip("_.-")


def _file(text: str) -> str:
    return str(Path(text).expanduser().absolute()) if text else ""


def _answer(manner: Manner, question: str, flag: str, default: str = "") -> str:
    if manner.ask:
        with asking():
            return str(click.prompt(question, default=default or None, err=True)).strip()
    if default:
        return default
    raise UsageError(f"{flag} is missing", fix=f"Give {flag}, or run the command at a terminal without --no-input.")


def _optional(question: str) -> str:
    with asking():
        return str(click.prompt(question, default="", show_default=False, err=True)).strip()


def _may(manner: Manner, question: str, given: bool) -> bool:
    """Consent: given by a flag, or asked for."""
    confirm: Callable[..., bool] = click.confirm
    with asking():
        return given or (manner.ask and confirm(question, err=True))
