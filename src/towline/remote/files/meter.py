"""How far a transfer of many files is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, int, int], None]
"""Told files done and in all, bytes done and in all; now and then in another thread."""


class Meter:
    """Counts, and tells numbers that never go back, though a round may begin with less than the last one saw.

    Args:
        progress: told after each addition.
    """

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._files = self._bytes = 0
        self._files_total = self._bytes_total = 0
        self._files_shown = self._bytes_shown = 0

    def start(self, files: int, bytes_total: int) -> None:
        """Begin a round with nothing done."""
        self._files_total, self._bytes_total = files, bytes_total
        self._files = self._bytes = 0

    def have(self, count: int, files: int = 0) -> None:
        """So many bytes and files were here already; nothing is told."""
        self._bytes += count
        self._files += files

    def add(self, count: int, files: int = 0) -> None:
        """So many more bytes and files are here; fewer bytes when what was here turned out to be of no use."""
        self.have(count, files)
        self._files_shown = max(self._files_shown, min(self._files, self._files_total))
        self._bytes_shown = max(self._bytes_shown, min(self._bytes, self._bytes_total))
        if self._progress:
            self._progress(self._files_shown, self._files_total, self._bytes_shown, self._bytes_total)

    def of_another(self) -> Callable[[int, int], None]:
        """For a program that tells bytes and files from its own start: what takes these numbers."""
        known = known_files = 0

        def take(count: int, files: int) -> None:
            nonlocal known, known_files
            self.add(count - known, files - known_files)
            known, known_files = count, files

        return take

    @property
    def left(self) -> int:
        """Bytes that are not here."""
        return max(0, self._bytes_total - self._bytes)
