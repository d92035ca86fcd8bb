"""Cases are found by being there: every module of a package is imported, and its decorator registers it."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def load(package: ModuleType) -> None:
    """Import every module of a package."""
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
