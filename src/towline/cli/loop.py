"""Running a command's asynchronous part, with Ctrl-C as an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; the first Ctrl-C cancels the work, a second one does not wait for it.

    Raises:
        KeyboardInterrupt: Ctrl-C ended the work.
    """
    pressed: list[bool] = []

    async def interruptible() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop() -> None:
            pressed.append(True)
            loop.remove_signal_handler(signal.SIGINT)
            if task:
                task.cancel()

        loop.add_signal_handler(signal.SIGINT, stop)
        return await work

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return asyncio.run(interruptible())
    except asyncio.CancelledError:
        if pressed:
            raise KeyboardInterrupt from None
        raise RuntimeError("the work was cancelled by itself") from None


@contextlib.contextmanager
def asking() -> Generator[None, None, None]:
    """For a question to a person in the middle of the work: Ctrl-C ends the question, and with it the work.

    The loop stands still while somebody types, so that its own handler would be heard only after the answer.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.siginterrupt(signal.SIGINT, False)  # as the loop had it


class Interrupts:
    """Ctrl-C as something to wait for, while entered; afterwards it is an ordinary KeyboardInterrupt."""

    def __init__(self) -> None:
        self._pressed = asyncio.Event()

    def __enter__(self) -> Interrupts:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._pressed.set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.let_through()

    def let_through(self) -> None:
        """From now on Ctrl-C raises KeyboardInterrupt wherever the program is."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    async def pressed(self, timeout: float | None = None) -> bool:
        """Wait for the next Ctrl-C; False when none came within `timeout` seconds."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._pressed.wait(), timeout)
        was_pressed = self._pressed.is_set()
        self._pressed.clear()
        return was_pressed
