"""The house's rules as data, and what finds a place that breaks one.

Each finding is one sentence with file, line and rule.
The rules are those of the table in CONTRIBUTING.md, "The house".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOMAIN = ("models", "config", "remote", "slurm", "container", "storage", "launch", "engine")

MAY_IMPORT: dict[str, frozenset[str]] = {
    "models": frozenset(),
    "config": frozenset({"models"}),
    "remote": frozenset({"models"}),
    "slurm": frozenset({"models"}),
    "container": frozenset({"models", "slurm"}),
    "storage": frozenset({"models", "slurm"}),
    "launch": frozenset({"models", "slurm"}),
    "engine": frozenset(DOMAIN) - {"engine"},
    "stager": frozenset(),
    "runner": frozenset({"stager"}),
    "tao": frozenset({*DOMAIN, "runner"}),
    "cli": frozenset({"models", "engine", "tao", "lab"}),
    "lab": frozenset({"models", "config"}),
    "": frozenset({"models", "engine"}),
}
"""Room → the other rooms it may import; "" is the package's own `__init__`."""

PURE = frozenset({"models", "slurm", "container", "storage", "launch"})
"""Rooms of values in, values or text out."""

ONLY_IN: dict[str, frozenset[str]] = {
    "subprocess": frozenset({"remote", "lab", "stager", "runner"}),
    "pty": frozenset({"remote", "lab"}),
    "sqlite3": frozenset({"engine", "tao"}),
    "pydantic": frozenset({"models", "config", "tao"}),
    "jinja2": frozenset({"slurm", "launch", "lab"}),
    "yaml": frozenset({"config"}),
    "click": frozenset({"cli"}),
    "rich": frozenset({"cli"}),
    "apprise": frozenset({"engine"}),
}
"""Module → the rooms that may import it; a dependency that spreads is felt at every start."""

STARTS_PROGRAMS = frozenset(
    {
        "asyncio.create_subprocess_exec",
        "asyncio.create_subprocess_shell",
        "os.system",
        "os.popen",
        "os.fork",
        "os.posix_spawn",
        "os.posix_spawnp",
    }
)
BECOMES_A_PROGRAM = frozenset({"os.execv", "os.execve", "os.execvp", "os.execvpe", "os.execl", "os.execlp"})
"""These may stand in a door, too: `towline lab shell` has nothing left to do itself."""

IMPURE_MODULES = frozenset(
    {
        "asyncio",
        "concurrent",
        "fcntl",
        "ftplib",
        "glob",
        "http",
        "io",
        "logging",
        "multiprocessing",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "tempfile",
        "termios",
        "threading",
        "urllib",
    }
)
PURE_OS_NAMES = frozenset({"path", "fspath", "fsencode", "fsdecode", "PathLike", "sep", "linesep"})
TOUCHES_FILES = frozenset(
    {"read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "iterdir", "rglob", "touch", "exists"}
)
"""Methods of paths; a pure room may name a local file of somebody else's, but not touch it."""
READS_PACKAGE_DATA = frozenset({"slurm", "launch", "storage", "container"})

PRINTS = frozenset({"sys.stdout", "sys.stderr", "sys.stdin"})
SILENT = PURE | {"engine", "config", "remote", "tao"}


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule."""

    file: str
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


@dataclass(frozen=True)
class Import:
    """One imported name: `module` is absolute, `name` is what was taken from it ("" for the module itself)."""

    module: str
    name: str
    line: int

    @property
    def dotted(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def room_of(path: Path, package: Path) -> str:
    """The room a file belongs to: the first folder below the package, "" for the package's own files.

    `python -m towline` is a door to the command line.
    """
    parts = path.relative_to(package).parts
    if parts == ("__main__.py",):
        return "cli"
    return parts[0] if len(parts) > 1 else ""


def findings(package: Path) -> list[Finding]:
    """Every place in the package that breaks a rule."""
    return [found for path in sorted(package.rglob("*.py")) for found in check_file(path, package)]


def check_file(path: Path, package: Path) -> list[Finding]:
    """Every place in one file that breaks a rule."""
    tree = ast.parse(path.read_text(), str(path))
    room, shown = room_of(path, package), str(path.relative_to(package.parent))
    module = ".".join([package.name, *path.relative_to(package).with_suffix("").parts])
    imports = list(_imports(tree, module))
    broken = [
        *_room_rules(room, package.name, imports),
        *_library_rules(room, imports),
        *_program_rules(room, tree, imports),
        *_purity_rules(room, tree, imports),
        *_printing_rules(room, tree),
    ]
    return [Finding(shown, line, rule) for line, rule in sorted(set(broken))]


Broken = Iterator[tuple[int, str]]


def _room_rules(room: str, package: str, imports: list[Import]) -> Broken:
    if room not in MAY_IMPORT:
        yield 1, f"there is no room {room!r}; add it to the table of rooms first"
        return
    for item in imports:
        parts = item.dotted.split(".")
        if parts[0] != package or len(parts) < 2:
            continue
        other = parts[1]
        if other in MAY_IMPORT and other != room and other not in MAY_IMPORT[room]:
            allowed = ", ".join(sorted(MAY_IMPORT[room])) or "no other room"
            yield item.line, f"{room or package} must not import {other}; it may import {allowed}"


def _library_rules(room: str, imports: list[Import]) -> Broken:
    for item in imports:
        top = item.module.split(".")[0]
        if top in ONLY_IN and room not in ONLY_IN[top]:
            yield item.line, f"only {_listed(ONLY_IN[top])} may import {top}"


def _program_rules(room: str, tree: ast.Module, imports: list[Import]) -> Broken:
    if room in ONLY_IN["subprocess"]:
        return
    forbidden = STARTS_PROGRAMS if room == "cli" else STARTS_PROGRAMS | BECOMES_A_PROGRAM
    used = [(node.lineno, dotted) for node, dotted in _dotted_names(tree)]
    used += [(item.line, item.dotted) for item in imports]
    for line, dotted in used:
        if dotted in forbidden or dotted.endswith((".subprocess_exec", ".subprocess_shell")):
            yield line, f"only {_listed(ONLY_IN['subprocess'])} may start programs ({dotted})"


def _purity_rules(room: str, tree: ast.Module, imports: list[Import]) -> Broken:
    if room not in PURE:
        return
    for item in imports:
        top = item.module.split(".")[0]
        if top in IMPURE_MODULES:
            yield item.line, f"{room} does no input or output and must not import {top}"
        if item.module == "os" and item.name and item.name not in PURE_OS_NAMES:
            yield item.line, f"{room} does no input or output and must not use {item.dotted}"
        if item.module.startswith("importlib.resources") and room not in READS_PACKAGE_DATA:
            yield item.line, f"{room} has no package data to read"
    for node, dotted in _dotted_names(tree):
        if dotted == "open" or (dotted.startswith("os.") and dotted.split(".")[1] not in PURE_OS_NAMES):
            yield node.lineno, f"{room} does no input or output and must not use {dotted}"
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = _dotted(call.func) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
        last = name.rpartition(".")[2]
        if name.removeprefix("pathlib.").startswith(("Path.", "PosixPath.")) or last in ("Path", "PosixPath"):
            yield call.lineno, f"{room} does no input or output: use pathlib.PurePosixPath, not {name}"
        if last in TOUCHES_FILES and not (last.startswith("read_") and room in READS_PACKAGE_DATA):
            yield call.lineno, f"{room} does no input or output and must not call {name}"


def _printing_rules(room: str, tree: ast.Module) -> Broken:
    if room not in SILENT:
        return
    for node, dotted in _dotted_names(tree):
        if dotted in PRINTS or dotted == "print":
            yield node.lineno, f"{room} does not print; hand the value back and let a door show it ({dotted})"


def _imports(tree: ast.Module, module: str) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node.level, node.module or "")
            for alias in node.names:
                yield Import(base, alias.name, node.lineno)


def _absolute(module: str, level: int, name: str) -> str:
    if not level:
        return name
    parents = module.removesuffix(".__init__").split(".")
    keep = len(parents) - level + (1 if module.endswith(".__init__") else 0)
    return ".".join([*parents[:keep], *([name] if name else [])])


def _dotted_names(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Every use of a name or of an attribute chain on a name, as `a.b.c`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
            dotted = _dotted(node)
            if dotted:
                yield node, dotted


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def _listed(rooms: frozenset[str]) -> str:
    return " and ".join(sorted(rooms))
