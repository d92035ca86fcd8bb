"""The preset `tao`: a profile from the variables of NVIDIA's TAO Toolkit, in the environment or `~/.config/tao/.env`.

Variables that fill a setting of a profile are declared at that setting; the others, which the preset's jobs
follow, are declared here. A variable of the process wins over the file's.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from towline.config.origins import Layer, Origin, Source, stack
from towline.config.settings import Setting, settings
from towline.models.errors import ConfigError

NAME = "tao"
INSIDE_JOB = "SLURM_JOB_ID"
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
PACKAGED_PARTITIONS = ("polar", "polar3", "polar4", "grizzly")
PACKAGED_HOURS = 4
"""Longest walltime of the packaged partitions, whatever they say themselves."""
_DEFAULTS: dict[str, object] = {
    "preset": NAME,
    "partition": ",".join(PACKAGED_PARTITIONS),
    "mounts": "/lustre",
    "time": f"{PACKAGED_HOURS}h",
    "gpus_per_node": 8,
    "cpus_per_task": 16,
    "max_cpus_per_task": 128,
    "export": "all",
    "image_tags": "reuse",
    "import_time": "30m",
    "import_memory": "32G",
}
_CONVENTIONS = ("gpus_per_node", "cpus_per_task", "max_cpus_per_task", "export")
"""The defaults that are TAO's way to start jobs; the others are about the clusters that it is written for."""
_NUMBERS = frozenset({"gpus_per_node", "cpus_per_task", "max_cpus_per_task"})
_SWITCHES = {
    "restart": ("on-fault", "never"),
    "image_import": ("auto", "never"),
    "image_tags": ("check", "reuse"),
    "log_per": ("node", "job"),
}
"""Settings with two words for what TAO's variables say with true and false."""
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True)
class TaoVariable:
    """A variable that no setting of a profile stands for.

    Attributes:
        name: its name.
        kind: how its text is read.
        default: what counts when it is not set.
    """

    name: str
    kind: Callable[[str, str], float | int | bool | str]
    default: float | int | bool | str


@dataclass(frozen=True)
class TaoEnvironment:
    """The variables of TAO that count here.

    Attributes:
        variables: name → its text.
        origins: name → where it is set.
        notes: what was left out, in sentences for the user.
    """

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether user and login host are there, so that there is a profile `tao`."""
        given = {setting.name for setting in settings() if any(name in self.variables for name in setting.tao)}
        return {"user", "hosts"} <= given

    def layer(self) -> Layer:
        """The settings of the profile, with the preset's own defaults below the variables.

        Raises:
            ConfigError: a number is none.
        """
        values: dict[str, object] = {}
        origins: dict[str, Origin] = {}
        for setting in settings():
            if name := next((name for name in setting.tao if name in self.variables), None):
                values[setting.name] = _profile_value(setting, name, self.variables[name])
                origins[setting.name] = self.origins[name]
        if self.value(_REQUIRE_SQSH) and values.get("image_import") != "never":
            values["image_import"] = "always"
            origins["image_import"] = self.origins[_REQUIRE_SQSH.name]
        root = f"/lustre/fsw/portfolios/edgeai/users/{values.get('user', '')}"
        defaults: dict[str, object] = {**_DEFAULTS, "root": root}
        preset = Layer(defaults, dict.fromkeys(defaults, Origin(Source.PRESET, NAME)))
        return stack([preset, Layer(values, origins)])

    def value(self, variable: TaoVariable) -> float | int | bool | str:
        """What a variable says.

        Raises:
            ConfigError: it cannot be read; its name is in the error.
        """
        text = self.variables.get(variable.name)
        return variable.default if text is None else variable.kind(variable.name, text)

    def check(self) -> None:
        """See that every variable that is set can be read.

        Raises:
            ConfigError: one cannot; its name is in the error.
        """
        for variable in VARIABLES:
            self.value(variable)


def with_conventions(layer: Layer) -> Layer:
    """The settings of a profile of one's own that names the preset, with TAO's way to start jobs below them."""
    if layer.values.get("preset") != NAME:
        return layer
    # CPUs for each GPU and CPUs for each task are two ways to say one thing.
    left_out = "cpus_per_task" if layer.values.get("cpus_per_gpu") else ""
    defaults = {name: _DEFAULTS[name] for name in _CONVENTIONS if name != left_out}
    return stack([Layer(defaults, dict.fromkeys(defaults, Origin(Source.PRESET, NAME))), layer])


def read_tao(env: Mapping[str, str]) -> TaoEnvironment:
    """The variables that are set, in the process or in the file below HOME; empty ones count as not set.

    Inside an allocation Slurm sets variables of the same names for its own purposes, so the process's are
    left out there.

    Raises:
        ConfigError: the file cannot be read.
    """
    known = {name for setting in settings() for name in setting.tao} | {variable.name for variable in VARIABLES}
    path, from_file = _file(env)
    own = {name: env[name] for name in known if env.get(name)}
    notes: tuple[str, ...] = ()
    if env.get(INSIDE_JOB) and (ignored := sorted(name for name in own if name.startswith("SLURM_"))):
        names = ", ".join(ignored)
        notes = (f"inside a Slurm job ({INSIDE_JOB} is set) {names} of the environment are not yours and were ignored",)
        own = {name: text for name, text in own.items() if name not in ignored}
    filed = {name: text for name, text in from_file.items() if name in known and text}
    origins = {name: Origin(Source.TAO_FILE, name, path) for name in filed}
    origins |= {name: Origin(Source.ENVIRONMENT, name) for name in own}
    return TaoEnvironment({**filed, **own}, origins, notes)


def read_tao_secret(name: str, env: Mapping[str, str]) -> str | None:
    """What TAO's file below HOME has for a variable such as NGC_KEY; None when it has nothing.

    Raises:
        ConfigError: the file cannot be read.
    """
    return _file(env)[1].get(name) or None


def parse_env_file(text: str) -> dict[str, str]:
    """Lines `NAME=VALUE`, with `export` before and quotes around the value as shells take them; others are none."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        if found := _LINE.fullmatch(line.strip()):
            values[found[1]] = _unquoted(found[2])
    return values


def _unquoted(text: str) -> str:
    if text[:1] in ("'", '"'):
        try:
            return "".join(shlex.split(text, comments=True)[:1])
        except ValueError:
            return text
    return re.split(r"\s#", text, maxsplit=1)[0].strip()


def _file(env: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    home = env.get("HOME", "")
    path = Path(home) / ".config" / "tao" / ".env"
    if not os.path.isabs(home):
        return path, {}
    try:
        return path, parse_env_file(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return path, {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read", why=str(getattr(error, "strerror", None) or error)) from None


# --- Values ---


def _profile_value(setting: Setting, name: str, text: str) -> object:
    if setting.name == "time":
        return round(_number(name, text) * 3600)
    if setting.name == "import_time":
        return _whole(name, text) * 60
    if setting.name == "import_memory":
        return _whole(name, text) * 1024
    if setting.name in _SWITCHES:
        on, off = _SWITCHES[setting.name]
        return on if _switch(name, text) else off
    return _whole(name, text) if setting.name in _NUMBERS else text


def _wrong(name: str, text: str, wanted: str) -> ConfigError:
    return ConfigError(f"{name} must be {wanted}", why=f"It is {text!r}.", fix=f"Correct {name}, or take it away.")


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise _wrong(name, text, "a number above 0")
    return number


def _whole(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal() and int(text)):
        raise _wrong(name, text, "a whole number above 0")
    return int(text)


def _switch(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise _wrong(name, text, "true or false")
    return word in _TRUE


_REQUIRE_SQSH = TaoVariable("SLURM_REQUIRE_SQSH", _switch, False)
VARIABLES: tuple[TaoVariable, ...] = (
    TaoVariable("SLURM_TIMEOUT_HOURS", _number, 3.8),
    TaoVariable("SLURM_USE_TIMEOUT", _switch, True),
    _REQUIRE_SQSH,
)
"""Every variable that no setting of a profile stands for."""
