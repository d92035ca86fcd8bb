"""What tells this machine about the lab: Towline's cluster profile `lab` and a block in /etc/hosts."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

from towline.lab.files import write_in_place
from towline.lab.keys import invoker
from towline.lab.layout import ALICE, LOGINS, Layout
from towline.lab.users import host_lines

_HOSTS = Path("/etc/hosts")
_HEADER = "# Written by `towline lab up`, removed by `towline lab down`.\n"
_BEGIN, _END = "# begin towline lab", "# end towline lab"


def config_dir() -> Path:
    """Where Towline's configuration of the person who runs this is, also behind sudo."""
    if own := os.environ.get("TOWLINE_CONFIG_DIR"):
        return Path(own)
    if xdg := os.environ.get("XDG_CONFIG_HOME"):
        return Path(xdg) / "towline"
    return Path(pwd.getpwuid(invoker()[0]).pw_dir) / ".config" / "towline"


def path() -> Path:
    """The profile file."""
    return config_dir() / "clusters.d" / "lab.toml"


def render(layout: Layout) -> str:
    """The profile `lab`."""
    values = {
        "hosts": [login.aliases[0] for login in LOGINS],
        "user": ALICE.name,
        "identity_file": str(layout.key(ALICE)),
        "known_hosts_file": str(layout.known_hosts),
        "root": f"/lustre/{ALICE.name}/towline",
        "partition": "batch",
        "image": "/lustre/images/python.sqsh",
        "mounts": ["/lustre"],
    }
    # JSON's strings and lists of strings are TOML's, too.
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in values.items()]
    return "".join([_HEADER, "[clusters.lab]\n", *lines])


def check(layout: Layout) -> str:
    """What is wrong; empty when profile and names are in place."""
    if with_block(_HOSTS.read_text()) != _HOSTS.read_text():
        return "/etc/hosts does not have the lab's names"
    return "" if path().exists() and path().read_text() == render(layout) else f"{path()} is not written"


def start(layout: Layout) -> None:
    """Write the profile and the names."""
    _replace(_HOSTS, with_block(_HOSTS.read_text()))
    _make_folders(path().parent)
    write_in_place(path(), render(layout), 0o600, invoker())
    record = _record(layout)
    known = record.read_text().splitlines() if record.exists() else []
    if str(path()) not in known:
        write_in_place(record, "".join(f"{line}\n" for line in [*known, str(path())]), 0o644)


def stop(layout: Layout) -> None:
    """Remove every profile ever written for this lab, and the names."""
    record = _record(layout)
    written = [Path(line) for line in record.read_text().splitlines()] if record.exists() else [path()]
    for profile in written:
        if profile.exists() and profile.read_text().startswith(_HEADER):
            profile.unlink()
    record.unlink(missing_ok=True)
    _replace(_HOSTS, without_block(_HOSTS.read_text()))


def forget(layout: Layout) -> None:
    """Remove the profile from the present configuration folder only."""
    path().unlink(missing_ok=True)
    record = _record(layout)
    if record.exists():
        others = [line for line in record.read_text().splitlines() if line != str(path())]
        write_in_place(record, "".join(f"{line}\n" for line in others), 0o644)


def without_block(text: str) -> str:
    """/etc/hosts without the lab's block; everything else byte for byte as it was."""
    before, begin, rest = text.partition(_BEGIN + "\n")
    _, end, after = rest.partition(_END + "\n")
    return before + after if begin and end else text


def with_block(text: str) -> str:
    """/etc/hosts with the lab's block at its end. A file whose last line is not ended has it ended first."""
    bare = without_block(text)
    if bare and not bare.endswith("\n"):
        bare += "\n"
    return bare + "".join(f"{line}\n" for line in [_BEGIN, *host_lines(), _END])


def _replace(file: Path, text: str) -> None:
    if file.read_text() == text:
        return
    fresh = file.with_name(f"{file.name}.towline-lab")
    fresh.write_text(text)
    fresh.chmod(file.stat().st_mode & 0o7777)
    try:
        fresh.replace(file)
    except OSError:  # a container's /etc/hosts is a mount, which cannot be renamed over
        file.write_text(text)
        fresh.unlink(missing_ok=True)


def _make_folders(folder: Path) -> None:
    for part in reversed([folder, *folder.parents]):
        if not part.exists():
            part.mkdir(mode=0o700)
            os.chown(part, *invoker())


def _record(layout: Layout) -> Path:
    return layout.state / "profiles-written"
