"""`python -m towline.tao.script SCRIPT ARGS…`: runs a Python script for which `tao_sdk` is this package.

Only in that process, and whether NVIDIA's package is installed or not; everything else about the script is as if Python
had been called with it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

THEIRS, OURS = "tao_sdk", "towline.tao"


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of `tao_sdk` among those of this package; what is not there is not found elsewhere either."""

    def __init__(self) -> None:
        self._own: dict[str, importlib.machinery.ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != THEIRS and not fullname.startswith(f"{THEIRS}."):
            return None
        ours = f"{OURS}{fullname.removeprefix(THEIRS)}"
        found = importlib.util.find_spec(ours)
        if found is None:
            raise ModuleNotFoundError(
                f"{fullname} is not among what Towline has of NVIDIA's SDK (see docs/tao.md)", name=fullname
            )
        package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(f"{OURS}{spec.name.removeprefix(THEIRS)}")
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was when it was imported; what it is has been changed to the other name meanwhile."""
        spec = module.__spec__
        module.__spec__ = self._own.pop(spec.name, spec) if spec else None


def install() -> None:
    """Let `import tao_sdk` mean this package from now on, in this process."""
    if not any(isinstance(each, _Alias) for each in sys.meta_path):
        sys.meta_path.insert(0, _Alias())


def main(words: Sequence[str]) -> None:
    """Run a script with its arguments as the program of this process."""
    script = words[0]
    install()
    sys.argv = list(words)
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
