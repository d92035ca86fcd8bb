"""munged: one for the whole lab, with the lab's own key; its socket is mounted into every host."""

from __future__ import annotations

from towline.lab.daemons import Daemon, answers_on
from towline.lab.keys import munge_key
from towline.lab.layout import CTL, Layout


def _argv(layout: Layout) -> list[str]:
    state = layout.state / "munge"
    files = {"key-file": munge_key(layout), "pid-file": state / "pid", "seed-file": state / "seed"}
    files["log-file"] = layout.log / "munged.log"
    options = [f"--{name}={path}" for name, path in files.items()]
    return ["munged", "--force", "--socket=/run/munge/munge.socket.2", *options]


MUNGED = Daemon(
    "munged", CTL, _argv, "munged.log", lambda layout: answers_on(f"{layout.run}/munge/munge.socket.2"), user="munge"
)
