"""What a Python of an older cluster or image does not have: parsing a file does not tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Version = tuple[int, int]

MODULES: dict[str, Version] = {
    **dict.fromkeys(("contextvars", "dataclasses", "importlib.resources"), (3, 7)),
    **dict.fromkeys(("importlib.metadata", "multiprocessing.shared_memory"), (3, 8)),
    **dict.fromkeys(("graphlib", "zoneinfo"), (3, 9)),
    "tomllib": (3, 11),
}
NAMES: dict[str, Version] = {
    **dict.fromkeys(
        ("time_ns", "monotonic_ns", "nullcontext", "ThreadingHTTPServer", "isascii", "fromisoformat"), (3, 7)
    ),
    **dict.fromkeys(("ForwardRef", "get_running_loop", "SimpleQueue", "register_at_fork"), (3, 7)),
    **dict.fromkeys(("cached_property", "singledispatchmethod", "Protocol", "Literal", "Final", "TypedDict"), (3, 8)),
    **dict.fromkeys(("prod", "isqrt", "dist", "unraisablehook", "excepthook", "posix_spawnp", "pidfd_open"), (3, 8)),
    **dict.fromkeys(("removeprefix", "removesuffix", "is_relative_to", "with_stem"), (3, 9)),
    **dict.fromkeys(("cache", "to_thread", "randbytes", "waitstatus_to_exitcode", "Annotated", "unparse"), (3, 9)),
    **dict.fromkeys(("pairwise", "aclosing", "TypeAlias", "ParamSpec", "bit_count", "anext", "aiter"), (3, 10)),
    **dict.fromkeys(("StrEnum", "file_digest", "Self", "ExceptionGroup", "chdir", "add_note"), (3, 11)),
    **dict.fromkeys(("batched", "data_filter", "override"), (3, 12)),
}
"""Names of the standard library, and since when they are there; `os.chdir` is older than the class of that name."""
_OLDER = {"os.chdir"}
WORDS: dict[str, Version] = {
    **dict.fromkeys(("capture_output", "text"), (3, 7)),
    **dict.fromkeys(("missing_ok", "dirs_exist_ok"), (3, 8)),
    **dict.fromkeys(("strict", "root_dir"), (3, 10)),
    **dict.fromkeys(("delete_on_close", "filter"), (3, 12)),
}
"""Arguments by name, which their functions took later than themselves."""


def too_new(source: str, version: Version) -> list[str]:
    """What a file has that this version of Python does not: the line, the name, and since when it is there."""
    found = ((line, name, since) for line, name, since in _later(ast.parse(source)) if since > version)
    return [f"line {line}: {name} is of Python {since[0]}.{since[1]}" for line, name, since in sorted(found)]


def _later(tree: ast.AST) -> Iterator[tuple[int, str, Version]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name, MODULES[each.name]) for each in node.names if each.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith("towline"):
            if node.module in MODULES:
                yield node.lineno, str(node.module), MODULES[str(node.module)]
            yield from ((node.lineno, each.name, NAMES[each.name]) for each in node.names if each.name in NAMES)
        elif isinstance(node, ast.Attribute) and node.attr in NAMES and ast.unparse(node) not in _OLDER:
            yield node.lineno, node.attr, NAMES[node.attr]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = (each.arg for each in node.keywords if each.arg in WORDS)
            yield from ((node.lineno, f"{node.func.attr}({word}=)", WORDS[word]) for word in words if word)
