"""Faults of the login hosts and of the way to them."""

from __future__ import annotations

import os
import shutil
import signal
from functools import partial
from pathlib import Path

from towline.lab import namespaces, overrides, process, slurmconf, users
from towline.lab.daemons import Daemon
from towline.lab.errors import LabError
from towline.lab.faults import noise, packets
from towline.lab.faults.fault import Argument, Fault, Values, host_of, number
from towline.lab.layout import ALICE, LOGINS, Host, Layout, find_host
from towline.lab.logins import sshd

_HOST = host_of("HOST", LOGINS)
_SSH = 22


def _down(layout: Layout, values: Values) -> None:
    sshd(find_host(values[0])).stop(layout)


def _up(layout: Layout, values: Values) -> None:
    host = find_host(values[0])
    if namespaces.holder(layout, host) is not None and not sshd(host).pids(layout):
        sshd(host).start(layout)


def _hang(layout: Layout, values: Values) -> None:
    daemon = sshd(find_host(values[0]))
    if not daemon.pids(layout):
        raise LabError(f"There is no sshd on {values[0]}.", fix="Turn `login-down` off first.")
    _signal(layout, daemon, signal.SIGSTOP)


def _unhang(layout: Layout, values: Values) -> None:
    _signal(layout, sshd(find_host(values[0])), signal.SIGCONT)


def _signal(layout: Layout, daemon: Daemon, what: signal.Signals) -> None:
    for pid in daemon.pids(layout):
        os.kill(pid, what)


def _cut(layout: Layout, values: Values) -> None:
    packets.cut_outside(layout, find_host(values[0]))


def _uncut(layout: Layout, values: Values) -> None:
    packets.mend_outside(layout, find_host(values[0]))


def _slow(layout: Layout, values: Values) -> None:
    for host in LOGINS:
        packets.Relay("slow-login", host, _SSH, int(values[0])).start(layout)


def _unslow(layout: Layout, _values: Values) -> None:
    for host in LOGINS:
        packets.Relay("slow-login", host, _SSH).stop(layout)


def _set(name: str, setting: str, layout: Layout, values: Values) -> None:
    """Have a setting in every login host's sshd_config."""
    for host in LOGINS:
        overrides.put(layout, config_of(host), name, f"{setting} {values[0]}\n")
    reload(layout)


def _unset(name: str, layout: Layout, _values: Values) -> None:
    for host in LOGINS:
        overrides.take(layout, config_of(host), name)
    reload(layout)


def _add_noise(layout: Layout, _values: Values) -> None:
    script = noise.install(layout)
    _set("login-banner", "Banner", layout, (str(script.with_suffix(".txt")),))


def _remove_noise(layout: Layout, values: Values) -> None:
    noise.remove(layout)
    _unset("login-banner", layout, values)


def _change_shell(layout: Layout, values: Values) -> None:
    entries = users.render_passwd("").splitlines()
    entry = next(line for line in entries if line.startswith(f"{ALICE.name}:"))
    overrides.put(layout, "passwd", "login-shell", f"{entry.rpartition(':')[0]}:{values[0]}\n")
    users.write(layout)


def _change_shell_back(layout: Layout, _values: Values) -> None:
    overrides.take(layout, "passwd", "login-shell")
    users.write(layout)


def _change_host_key(layout: Layout, values: Values) -> None:
    host = find_host(values[0])
    key = layout.state / "faults" / f"hostkey.{host.name}"
    if not key.exists():
        process.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "another", "-f", str(key)])
    overrides.put(layout, config_of(host), "hostkey-change", f"HostKey {key}\n")
    reload(layout)


def _change_host_key_back(layout: Layout, values: Values) -> None:
    overrides.take(layout, config_of(find_host(values[0])), "hostkey-change")
    reload(layout)
    for path in (layout.state / "faults").glob(f"hostkey.{values[0]}*"):
        path.unlink()


def config_of(host: Host) -> str:
    """The name of a login host's sshd_config."""
    return f"sshd-{host.name}.conf"


def reload(layout: Layout) -> None:
    """Have every sshd read its configuration anew; sessions go on with what they have."""
    before = {host.name: slurmconf.text(layout, config_of(host)) for host in LOGINS}
    slurmconf.write(layout)
    for host in LOGINS:
        if slurmconf.text(layout, config_of(host)) != before[host.name]:
            _restart_listener(layout, host)


def _restart_listener(layout: Layout, host: Host) -> None:
    daemon = sshd(host)
    listeners = daemon.pids(layout)[:1]
    if not listeners:
        return  # it reads its configuration when it starts
    log = layout.log / daemon.log
    before = log.read_text().count("Server listening")
    os.kill(listeners[0], signal.SIGHUP)
    if not _is_stopped(listeners[0]):
        process.until(lambda: log.read_text().count("Server listening") > before, 10, f"sshd's return on {host.name}")


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _shell(word: str) -> str:
    path = shutil.which(word, path=process.PATH)
    if path is None:
        raise LabError(f"There is no shell {word!r} on this machine.", fix="Install it, e.g. `apt-get install tcsh`.")
    return path


def _startups(word: str) -> str:
    parts = word.split(":")
    if len(parts) not in (1, 3) or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise LabError(f"S is {word!r}, not what sshd's MaxStartups takes.", fix="It is e.g. `2` or `2:50:5`.")
    return word


FAULTS = (
    Fault("login-down", "nothing listens for ssh on HOST, and its sessions end", _down, _up, (_HOST,)),
    Fault("login-hang", "HOST accepts connections and never answers; sessions stand still", _hang, _unhang, (_HOST,)),
    Fault("login-cut", "packets between this machine and HOST vanish without a reset", _cut, _uncut, (_HOST,)),
    Fault(
        "login-latency",
        "new ssh connections have a round trip of MS milliseconds more",
        _slow,
        _unslow,
        (number("MS", 1, 60_000),),
    ),
    Fault(
        "login-maxsessions",
        "a connection may have K sessions (sshd's MaxSessions)",
        partial(_set, "login-maxsessions", "MaxSessions"),
        partial(_unset, "login-maxsessions"),
        (number("K", 0, 1000),),
    ),
    Fault(
        "login-maxstartups",
        "S connections may be logging in at a time (sshd's MaxStartups)",
        partial(_set, "login-maxstartups", "MaxStartups"),
        partial(_unset, "login-maxstartups"),
        (Argument("S", _startups),),
    ),
    Fault("login-banner", "alice's logins chatter on stdout and stderr", _add_noise, _remove_noise),
    Fault(
        "login-shell",
        "alice's login shell is SHELL (tcsh, fish, zsh …)",
        _change_shell,
        _change_shell_back,
        (Argument("SHELL", _shell),),
    ),
    Fault(
        "hostkey-change",
        "HOST has another host key than the one known",
        _change_host_key,
        _change_host_key_back,
        (_HOST,),
    ),
)
