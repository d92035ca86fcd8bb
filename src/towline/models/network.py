"""The network that a job trains: which of its specification's keys datasets fill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from towline.models.fields import Model, Text
from towline.models.parts import check_uri

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _check_name(text: str) -> str:
    """A name that can be that of a file, and of a directory.

    Raises:
        ValueError: it is none.
    """
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r} is no name of letters, digits, '_', '.' and '-'")
    return text


class Network(Model):
    """A network whose specification is filled from datasets' roots.

    Attributes:
        name: of its data file, `networks/NAME.toml`, which says what a dataset's root holds.
        datasets: split → root: a path of the shared file system, or a URI of data that is brought from elsewhere.
        specs: the specification as a file of this machine (TOML, YAML or JSON). The job finds it, filled, where
            `TOWLINE_SPECS` says.
    """

    name: Annotated[str, AfterValidator(_check_name)]
    datasets: Mapping[Annotated[str, AfterValidator(_check_name)], Annotated[str, AfterValidator(check_uri)]] = Field(
        default_factory=dict
    )
    specs: Annotated[Text, Field(min_length=1)] | None = None

    @property
    def suffix(self) -> str:
        """The ending of the file with the filled specification: that of the given one."""
        _, dot, ending = (self.specs or "specs.toml").rpartition("/")[2].rpartition(".")
        return f".{ending}" if dot and ending in ("toml", "yaml", "yml", "json") else ".yaml"
