"""What a terminal may see of text that came from a cluster: colours stay, everything else that steers it goes."""

from __future__ import annotations

import codecs
import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor, modes
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\|(?=\n))"  # OSC, DCS, SOS, PM, APC: titles, links, queries
    r"|\x1b[ -/]*[0-Z\\^-~]"  # two- and three-character escapes
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # other control characters, C1 included
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]*\x1b?|[ -/]*)?\Z")
_LONGEST_HELD = 4096  # characters of an unfinished sequence that are kept for the next chunk
RESET = "\x1b[0m"


def clean(text: str) -> str:
    """One line that is safe on a terminal: blanks for line ends and tabs, other control characters spelled out."""
    return "".join(char if char.isprintable() else _spelled(char) for char in text)


def clean_lines(text: str) -> list[str]:
    """The text's lines, each of them clean."""
    return [clean(line) for line in text.splitlines()]


def _spelled(char: str) -> str:
    return " " if char in "\n\t\r" else char.encode("unicode_escape", "surrogatepass").decode("ascii")


class LogFilter:
    """Makes a stream of log bytes safe for a terminal; sequences and characters may be cut between chunks.

    Line ends, carriage returns, tabs and colours (SGR) pass. What is not UTF-8 is shown as a replacement character.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._coloured = False

    def feed(self, data: bytes) -> bytes:
        """The next bytes, cleaned; the start of an unfinished sequence is kept back."""
        return self._clean(self._decoder.decode(data), last=False)

    def pause(self) -> bytes:
        """An end to colours if there were any; what is kept back is kept on."""
        coloured, self._coloured = self._coloured, False
        return RESET.encode() if coloured else b""

    def close(self) -> bytes:
        """What is left, and an end to colours if there were any."""
        rest = self._clean(self._decoder.decode(b"", True), last=True)
        return rest + RESET.encode() if self._coloured else rest

    def _clean(self, text: str, *, last: bool) -> bytes:
        text = self._held + text
        found = None if last else _UNFINISHED.search(text)
        cut = found.start() if found and len(text) - found.start() <= _LONGEST_HELD else len(text)
        self._held = text[cut:]
        return _SEQUENCE.sub(self._keep_colour, text[:cut]).encode()

    def _keep_colour(self, found: re.Match[str]) -> str:
        if not _COLOUR.fullmatch(found[0]):
            return ""
        self._coloured = True
        return found[0]
