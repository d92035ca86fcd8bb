"""Imports of images are killed at random moments, and asked for by many at once."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.chaos.registry import Run, Story, chaos
from harness.lab import TOWLINE, lab_environment

IMAGE = "registry.lab:5000/demo:latest"
CLIENTS = 20
WINDOW = 1.1
"""The kill falls within this many times what an import takes that is left alone."""
PATIENCE = 180
"""Seconds in which an image must be there after whatever was killed; a claim that nobody holds is broken sooner."""
KILLS = ("job", "cancel", "client")


@chaos("import", runs=31)
@contextmanager
def image_import() -> Generator[Story]:
    """Many ask for one new image, then imports are killed: one import, no half file, and the next makes it anew."""
    with tempfile.TemporaryDirectory() as scratch, lab_environment(Path(scratch, "state")) as env:
        story = _Importing(env, Path(scratch))
        try:
            yield story
        finally:
            story.clean()


class _Importing(Story):
    def __init__(self, env: dict[str, str], scratch: Path) -> None:
        self._env = env
        self._scratch = scratch
        self._folders: list[str] = []
        started = time.monotonic()
        self._pull(self._new_cache())
        self._window = WINDOW * (time.monotonic() - started)

    def play(self, run: Run) -> Sequence[str]:
        cache = self._new_cache()
        if run.number == 1:
            return self._crowd(cache, run)
        return self._broken(cache, run)

    def clean(self) -> None:
        """Take the caches away."""
        self._on_login("rm -rf " + " ".join(self._folders))

    def _crowd(self, cache: str, run: Run) -> Sequence[str]:
        clients = [self._start(cache, number) for number in range(CLIENTS)]
        codes = [client.wait(PATIENCE * 2) for client in clients]
        made = self._on_login(f"ls {cache}/imports/*/attempts | grep -c '^[0-9]'").strip()
        run.seen["imports of a crowd"] += int(made)
        sentences = [f"{CLIENTS} clients caused {made} imports"] if made != "1" else []
        return [*sentences, *(f"a client ended with {code}" for code in codes if code), *self._files(cache, 1)]

    def _broken(self, cache: str, run: Run) -> Sequence[str]:
        kill, moment = run.random.choice(KILLS), run.random.uniform(0, self._window)
        with self._start(cache, run.number) as client:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(moment)
            if kill == "client":
                client.kill()
            else:
                how = "--signal=KILL --full" if kill == "job" else ""
                self._on_login(f"squeue -h -p cpu -u alice -o %i | xargs -r scancel {how}")
            sentences = [f"{kill} after {moment:.2f} s: {sentence}" for sentence in self._files(cache, None)]
            client.wait(PATIENCE)
        there = self._on_login(f"ls {cache}/*.sqsh 2>/dev/null || true").strip()
        run.seen[f"{kill}: {'there' if there else 'not there'}"] += 1
        if code := self._pull(cache):
            sentences.append(f"{kill} after {moment:.2f} s: the next pull ended with {code}")
        return [*sentences, *self._files(cache, 1)]

    def _files(self, cache: str, count: int | None) -> list[str]:
        """What is wrong with the files that a job could start from; with a count, parts must be gone, too."""
        look = "unsquashfs -ll $f >/dev/null 2>&1 && echo whole || echo half"
        words = self._on_login(f"for f in {cache}/*.sqsh; do [ ! -e $f ] || {{ {look}; }}; done").split()
        sentences = ["there is a file that is not whole"] if "half" in words else []
        if count is not None and len(words) != count:
            sentences.append(f"there are {len(words)} files")
        left = self._on_login(f"ls -A {cache} | grep '^[.].*part$' || true").split() if count is not None else []
        return [*sentences, *(f"{name} is left" for name in left)]

    def _new_cache(self) -> str:
        cache = f"/lustre/alice/chaos-images-{secrets.token_hex(4)}"
        self._folders.append(cache)
        return cache

    def _start(self, cache: str, number: int) -> subprocess.Popen[bytes]:
        """A client of its own: with another state directory, and by the one or the other login host."""
        own = {"TOWLINE_STATE_DIR": str(self._scratch / f"client-{number}"), "TOWLINE_IMAGE_CACHE": cache}
        own["TOWLINE_HOSTS"] = ("login1.lab", "login2.lab")[number % 2]
        none = subprocess.DEVNULL
        command = [TOWLINE, "images", "pull", IMAGE]
        return subprocess.Popen(command, env={**self._env, **own}, stdin=none, stdout=none, stderr=none)

    def _pull(self, cache: str) -> int:
        with self._start(cache, 0) as client:
            try:
                return client.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                client.kill()
                return -1

    def _on_login(self, script: str) -> str:
        command = [TOWLINE, "lab", "shell", "login1", "--", "sh", "-c", script]
        done = subprocess.run(
            command, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return done.stdout
