"""What the documentation says, taken apart: pages, code blocks, command lines, links."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "skills").rglob("*.md")]))

_FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`(towline [^`\n]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command line that the documentation shows."""

    where: str
    line: str

    def __str__(self) -> str:
        return f"{self.where}: {self.line}"

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line, comments=True)


def name(page: Path) -> str:
    """The page as a reader would call it."""
    return str(page.relative_to(ROOT))


def blocks(language: str) -> list[Block]:
    """Every fenced block of a language, in the order of pages."""
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text()
        fences = [match for match in _FENCE.finditer(text) if match[3].split(" ")[0] == language]
        found += [Block(name(page), text.count("\n", 0, match.start()) + 2, language, match[4]) for match in fences]
    return found


def shown_commands() -> list[Command]:
    """Every `$ …` line of the console blocks; a line that ends in a backslash goes on."""
    found: list[Command] = []
    for block in blocks("console"):
        lines = block.text.replace("\\\n", "  ").splitlines()
        found += [Command(str(block), line.strip()[2:]) for line in lines if line.strip().startswith("$ ")]
    return found


def commands_of(page: Path) -> list[str]:
    """Every line of the shell blocks of one page, which an agent runs as they stand."""
    return [line for block in blocks("sh") if block.page == name(page) for line in block.text.splitlines() if line]


def inline_commands() -> list[Command]:
    """Every `towline …` in running text."""
    return [
        Command(f"{name(page)}:{page.read_text().count(chr(10), 0, match.start()) + 1}", match[1])
        for page in PAGES
        for match in _INLINE.finditer(_without_blocks(page.read_text()))
    ]


def links(page: Path) -> list[str]:
    """The targets of the links and pictures of a page that lead to files or headings of the project."""
    text = re.sub(r"`[^`\n]*`", "", _without_blocks(page.read_text()))
    found = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The names by which headings can be linked, as GitHub forms them."""
    headings = re.findall(r"^#+ +(.+?) *$", _without_blocks(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _without_blocks(text: str) -> str:
    return _FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
