"""The kinds of values that the tables of a job's description are made of, and their common base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from towline.models.image import Image
from towline.models.times import check_when
from towline.models.values import (
    check_absolute_path,
    check_clean_text,
    check_env_name,
    check_one_line,
    check_token,
    parse_memory,
    parse_walltime,
)

RESERVED_ENV = ("TOWLINE_", "SLURM_", "SBATCH_", "SRUN_")
"""Prefixes of variables that belong to Towline and Slurm and cannot be set by a spec."""

MAX_LABEL = 256
"""Characters of a label's name or text."""


class Model(BaseModel):
    """A table of a job's description: frozen, and without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False, validate_default=True)


class Written(str):
    """A value that stands in a file without quotation marks; the field that gets it reads it as what it needs."""

    __slots__ = ()


def _walltime(value: object) -> object:
    if isinstance(value, Written) and value.isdecimal():
        raise ValueError(f"{value} could be minutes or seconds; write {value}m or {value}s")
    return parse_walltime(value) if isinstance(value, str) else value


def _memory(value: object) -> object:
    return parse_memory(value) if isinstance(value, str) else value


def _node_memory(value: object) -> object:
    return value if value == ALL_MEMORY else _memory(value)


def _words(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return value


def _own_env_name(name: str) -> str:
    check_env_name(name)
    if name.startswith(RESERVED_ENV):
        raise ValueError(f"{name} belongs to Towline or Slurm and is set by them; choose another name")
    return name


def _image_text(value: str) -> str:
    Image.parse(value)
    return value


def _label(text: str) -> str:
    if len(text) > MAX_LABEL:
        raise ValueError(f"a label has at most {MAX_LABEL} characters")
    return check_one_line(check_clean_text(text))


def _label_name(name: str) -> str:
    if not name or name != name.strip():
        raise ValueError(f"{name!r} is not a label's name: it is empty, or begins or ends with a blank")
    return _label(name)


ALL_MEMORY = "all"
"""The word for all memory of the nodes, `--mem=0` in Slurm."""

Token = Annotated[str, AfterValidator(check_token)]
Tokens = Annotated[tuple[Token, ...], BeforeValidator(_words, json_schema_input_type=tuple[Token, ...] | str)]
ClusterPath = Annotated[str, AfterValidator(check_absolute_path)]
Text = Annotated[str, AfterValidator(check_clean_text)]
Line = Annotated[str, AfterValidator(check_clean_text), AfterValidator(check_one_line)]
EnvName = Annotated[str, AfterValidator(_own_env_name)]
Environment = Mapping[EnvName, Text]
SecretNames = Annotated[tuple[EnvName, ...], BeforeValidator(_words)]
ImageText = Annotated[str, AfterValidator(_image_text)]
Walltime = Annotated[int, Field(gt=0, le=366 * 86400), BeforeValidator(_walltime, json_schema_input_type=int | str)]
Grace = Annotated[int, Field(gt=0, le=65535), BeforeValidator(_walltime, json_schema_input_type=int | str)]
HangTime = Annotated[int, Field(ge=10, le=604800), BeforeValidator(_walltime, json_schema_input_type=int | str)]
MemoryMiB = Annotated[int, Field(gt=0), BeforeValidator(_memory, json_schema_input_type=int | str)]
NodeMemory = Annotated[MemoryMiB | Literal["all"], BeforeValidator(_node_memory, json_schema_input_type=int | str)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
GpuCount = Annotated[int, Field(ge=0, le=1024)]
When = Annotated[str, AfterValidator(check_when)]
Labels = Mapping[Annotated[str, AfterValidator(_label_name)], Annotated[str, AfterValidator(_label)]]
