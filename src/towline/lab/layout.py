"""What the lab consists of and where each thing lives: hosts, addresses, users, paths. Names only, no I/O.

Everything lives in one folder. Inside a lab host the same folder is visible under the same path, so that a path
in a configuration file means the same thing on every side.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from towline.lab.errors import LabError

DEFAULT_ROOT = Path("/var/lib/towline-lab")
DEFAULT_DISK_GIB = 8
SUBNET = "10.77.0.0/24"
UPLINK = "towline0"
"""The network device by which this machine reaches the lab; the bridge itself lives in the host `switch`."""
UPLINK_ADDRESS = "10.77.0.254"
GPUS_PER_NODE = 8
GPU_TYPE = "h100"
FAKE_GPUS = tuple(Path(f"/dev/fakegpu{index}") for index in range(GPUS_PER_NODE))
OPEN_REGISTRY_PORT = 5000
LOCKED_REGISTRY_PORT = 5001
TOKEN_PORT = 5002
STORE_PORT = 5010
"""The object store."""
WEB_PORT, WEB_TLS_PORT = 5011, 5012
REGISTRY_USER = "puller"

_SYSTEM_FOLDERS = ("/run", "/var/run", "/var/log", "/dev", "/proc", "/etc/slurm", "/usr/local/bin")
_USER_FOLDERS = ("/tmp", "/var/tmp", "/home", "/root", "/lustre")  # noqa: S108
_HIDDEN_INSIDE = (*_SYSTEM_FOLDERS, *_USER_FOLDERS)


@dataclass(frozen=True)
class Host:
    """One machine of the lab, real in all but the kernel: its own network, mounts, processes and name."""

    name: str
    address: str
    role: str
    """`switch`, `ctl`, `gpu`, `cpu`, `cloud` or `login`."""
    aliases: tuple[str, ...] = ()
    cpus: int = 0
    memory_mb: int = 0

    @property
    def has_gpus(self) -> bool:
        """Whether this host carries the fake GPUs."""
        return self.role in ("gpu", "cloud")


@dataclass(frozen=True)
class User:
    """One account of the cluster; it exists inside the lab's hosts only."""

    name: str
    uid: int
    account: str
    """The Slurm account; empty for a user who has no association and is refused by Slurm."""


SWITCH = Host("switch", "", "switch")
CTL = Host("ctl", "10.77.0.1", "ctl", ("registry.lab", "ctl.lab", "store.lab"))
GPU_NODES = tuple(
    Host(f"node{n}", f"10.77.0.{10 + n}", "gpu", (f"node{n}.lab",), cpus=32, memory_mb=128_000) for n in range(1, 5)
)
CPU_NODE = Host("cpu1", "10.77.0.21", "cpu", ("cpu1.lab",), cpus=16, memory_mb=64_000)
CLOUD_NODE = Host("cloud1", "10.77.0.31", "cloud", ("cloud1.lab",), cpus=8, memory_mb=16_000)
LOGINS = (
    Host("login1", "10.77.0.41", "login", ("login1.lab",)),
    Host("login2", "10.77.0.42", "login", ("login2.lab",)),
)
STATIC_NODES = (*GPU_NODES, CPU_NODE)
NODES = (*STATIC_NODES, CLOUD_NODE)
CLUSTER_HOSTS = (CTL, *NODES, *LOGINS)
HOSTS = (SWITCH, *CLUSTER_HOSTS)

ALICE = User("alice", 2001, "research")
BOB = User("bob", 2002, "")
USERS = (ALICE, BOB)


def find_host(name: str) -> Host:
    """The host of that name or alias.

    Raises:
        LabError: there is none; the message lists those there are.
    """
    for host in HOSTS:
        if name in (host.name, *host.aliases):
            return host
    known = ", ".join(host.name for host in CLUSTER_HOSTS)
    raise LabError(f"The lab has no host {name!r}.", fix=f"There are: {known}.")


@dataclass(frozen=True)
class Layout:
    """The lab's folder and what is where in it."""

    root: Path = DEFAULT_ROOT
    disk_gib: int = DEFAULT_DISK_GIB
    """Size of `/lustre` in GiB; sparse, so that only what is written takes space."""

    @classmethod
    def from_environment(cls) -> Layout:
        """The layout that `TOWLINE_LAB_DIR` and `TOWLINE_LAB_DISK_GIB` ask for, else the defaults.

        Raises:
            LabError: the folder would be hidden inside the lab's hosts, or the size is not a whole number of GiB.
        """
        root = Path(os.environ.get("TOWLINE_LAB_DIR") or DEFAULT_ROOT)
        size = os.environ.get("TOWLINE_LAB_DISK_GIB") or str(DEFAULT_DISK_GIB)
        if not size.isdecimal() or int(size) < 1:
            raise LabError(f"TOWLINE_LAB_DISK_GIB is {size!r}, not a whole number of GiB.", fix="Set it to e.g. 8.")
        return cls(_checked_root(root), int(size))

    @property
    def etc(self) -> Path:
        """Configuration; every host sees it as /etc/slurm, too."""
        return self.root / "etc"

    @property
    def run(self) -> Path:
        """What is true only while the lab is up."""
        return self.root / "run"

    @property
    def log(self) -> Path:
        """One log file per daemon and host."""
        return self.root / "log"

    @property
    def state(self) -> Path:
        """What outlives a `down`: Slurm's and MariaDB's data, registries' content, fault switches."""
        return self.root / "state"

    @property
    def keys(self) -> Path:
        """Private keys of the users and login hosts, the registry's password."""
        return self.root / "keys"

    @property
    def home(self) -> Path:
        """Becomes /home in every host."""
        return self.root / "home"

    @property
    def bin(self) -> Path:
        """The lab's own scripts, as Slurm and the hosts run them."""
        return self.root / "bin"

    @property
    def runtime(self) -> Path:
        """The container runtime; `bin` in it becomes /usr/local/bin of hosts, `gpu-bin` that of GPU hosts."""
        return self.root / "runtime"

    @property
    def lustre(self) -> Path:
        """Where the shared disk is mounted on this machine; /lustre in every host."""
        return self.root / "mnt" / "lustre"

    @property
    def lustre_image(self) -> Path:
        """The file behind the shared disk."""
        return self.root / "lustre.img"

    @property
    def images(self) -> Path:
        """Container images; /lustre/images in every host."""
        return self.lustre / "images"

    @property
    def known_hosts(self) -> Path:
        """The login hosts' keys as OpenSSH reads them."""
        return self.root / "known_hosts"

    @property
    def registry_password(self) -> Path:
        """The file with the password of `REGISTRY_USER` at the locked registry."""
        return self.keys / "registry-password"

    def own(self, host: Host) -> Path:
        """The folder of what belongs to one host alone: tmp, logs, spool, container data."""
        return self.root / "hosts" / host.name

    def key(self, user: User) -> Path:
        """The private SSH key of a user."""
        return self.keys / user.name


def hidden_inside(path: Path) -> str:
    """The folder around `path` that hosts have one of their own of, so that they do not see it; empty if none."""
    return next((hidden for hidden in _HIDDEN_INSIDE if path.is_relative_to(hidden)), "")


def _checked_root(root: Path) -> Path:
    resolved = root.absolute()
    if hidden := "/" if resolved == Path("/") else hidden_inside(resolved):
        raise LabError(
            f"The lab's folder cannot be {resolved}.",
            why=f"Each host of the lab has a {hidden} of its own, which would hide it.",
            fix=f"Set TOWLINE_LAB_DIR to a folder elsewhere; {DEFAULT_ROOT} is the default.",
        )
    return resolved
