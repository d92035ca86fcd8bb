"""MariaDB for Slurm's accounting: own data, own socket, no network, small."""

from __future__ import annotations

import shutil

from towline.lab import namespaces, process
from towline.lab.daemons import Daemon, answers_on
from towline.lab.errors import LabError
from towline.lab.files import write_in_place
from towline.lab.layout import CTL, Layout

_SOCKET = "/run/mysqld/mysqld.sock"
_SETUP = """\
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_acct_db.* TO slurm@localhost;
"""


def _argv(layout: Layout) -> list[str]:
    return [
        "mariadbd",
        "--no-defaults",
        "--user=mysql",
        f"--datadir={layout.state / 'mysql'}",
        f"--init-file={layout.etc / 'mariadb-setup.sql'}",
        f"--socket={_SOCKET}",
        "--pid-file=/run/mysqld/mysqld.pid",
        "--skip-networking",
        "--skip-log-bin",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=32M",
        "--innodb-lock-wait-timeout=900",
        # The lab's records need to outlive its processes, not a power cut of the machine.
        "--innodb-flush-log-at-trx-commit=2",
        "--performance-schema=OFF",
    ]


def _is_ready(layout: Layout) -> bool:
    return answers_on(f"{namespaces.root_of(layout, CTL)}{_SOCKET}")


MARIADB = Daemon("mariadbd", CTL, _argv, "mariadb.log", _is_ready, detaches=False)


def start(layout: Layout) -> None:
    """Make the database if there is none and start it. Raises `LabError` when either fails."""
    data = layout.state / "mysql"
    if not (data / "lab-complete").exists():
        _create(layout)
    write_in_place(layout.etc / "mariadb-setup.sql", _SETUP, 0o644)
    MARIADB.start(layout)


def _create(layout: Layout) -> None:
    data = layout.state / "mysql"
    for half_made in data.iterdir():
        shutil.rmtree(half_made) if half_made.is_dir() else half_made.unlink()
    options = ["--no-defaults", "--user=mysql", f"--datadir={data}", "--skip-test-db", "--skip-name-resolve"]
    done = process.run(["mariadb-install-db", *options], check=False, timeout=120)
    if done.returncode != 0:
        raise LabError("The accounting database could not be made.", why=done.stdout[-2000:] + done.stderr[-2000:])
    (data / "lab-complete").touch()
