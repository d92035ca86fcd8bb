"""Where the value of a setting came from, and how layers of settings lie on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class Source(str, Enum):
    """A kind of place that gives settings, from the weakest to the strongest; the value is the word in `--json`."""

    DEFAULT = "default"
    PRESET = "preset"
    FILE = "file"
    PROJECT = "project"
    TAO_FILE = "tao-file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True)
class Origin:
    """The place that gave a value.

    Attributes:
        source: its kind.
        name: the variable's name, where variables give values.
        path: the file, where a file does.
    """

    source: Source
    name: str = ""
    path: Path | None = None

    def __str__(self) -> str:
        if self.source is Source.ENVIRONMENT:
            return f"{self.name} in the environment"
        if self.source is Source.TAO_FILE:
            return f"{self.name} in {self.path}"
        if self.source is Source.PRESET:
            return f"the preset {self.name}"
        return str(self.path) if self.path else "the default"


DEFAULT = Origin(Source.DEFAULT)


@dataclass(frozen=True)
class Layer:
    """Settings from one kind of place.

    Attributes:
        values: setting → value as it was written there.
        origins: setting → where exactly; for each of `values`.
    """

    values: Mapping[str, object]
    origins: Mapping[str, Origin]

    @classmethod
    def of_file(cls, values: Mapping[str, object], path: Path, source: Source = Source.FILE) -> Layer:
        """Settings that all stand in one file."""
        return cls(values, dict.fromkeys(values, Origin(source, path=path)))


def stack(layers: Sequence[Layer]) -> Layer:
    """All layers as one: of a setting that several give, the last one's value counts."""
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        values.update(layer.values)
        origins.update({name: layer.origins[name] for name in layer.values})
    return Layer(values, origins)
