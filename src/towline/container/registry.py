"""Registries as Enroot uses them: its credentials file, and asking whether an image is there."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from towline.container.reference import DOCKER_HUB
from towline.models.image import Image
from towline.slurm.calls import Call
from towline.slurm.doctor import Answer, Credentials, parse_answer
from towline.slurm.scripts import script

NGC = "nvcr.io"
NGC_AUTHENTICATOR = "authn.nvidia.com"
NGC_USER = "$oauthtoken"
_HUB = "registry-1.docker.io"
_SHOWN_TAGS = 8


@dataclass(frozen=True)
class Manifest:
    """What came of asking for an image's manifest.

    Attributes:
        url: what was asked for.
        first: HTTP status without credentials; 0 when the registry was not reached.
        code: HTTP status at the end.
        file: the credentials file.
        line: host and user of the line that was used; empty when none fits or none was needed.
        token: HTTP status of the request for a token, where the registry works with tokens; 0 where not.
        realm: the host that was asked for the token in the end; it may be another than the registry.
        digest: the manifest's digest, as the registry says it.
        words: curl's own words when it failed.
        curl: whether the login host has curl.
        tags: those of the repository, where the registry has it but not this tag, and lists them.
        sizes: architecture, as `uname -m` says it → bytes of the image's layers, compressed as they lie there.
    """

    url: str
    first: int
    code: int
    file: str
    line: str = ""
    token: int = 0
    realm: str = ""
    digest: str = ""
    words: str = ""
    curl: bool = True
    tags: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def found(self) -> bool:
        """Whether the image is there for us."""
        return self.code == 200


def machine_of(registry: str) -> str:
    """The name of a registry in a credentials file: its host, without the port."""
    return registry.rpartition(":")[0] if registry.rpartition(":")[2].isdecimal() and ":" in registry else registry


def credential_lines(registry: str, user: str, secret: str) -> str:
    """The lines of a credentials file for a registry; NGC's images need a second one for its authenticator.

    Raises:
        ValueError: user or secret could not stand in such a file as they are.
    """
    for what, text in (("registry", registry), ("user", user), ("key", secret)):
        if not text or any(char.isspace() or not char.isprintable() for char in text):
            raise ValueError(f"the {what} must be one word without blanks")
    if secret.startswith("$"):
        raise ValueError("the key begins with `$`, and Enroot would take it for a variable or a command")
    machine = machine_of(registry)
    machines = (NGC, NGC_AUTHENTICATOR) if machine == NGC else (machine,)
    return "".join(f"machine {each} login {user} password {secret}\n" for each in machines)


def login_call(lines: str, setup: str = "", tried_at: tuple[str, str] | None = None) -> Call:
    """Write lines into the cluster's credentials file; read the answer with `parse_login`.

    Args:
        lines: the lines.
        setup: the profile's shell line.
        tried_at: the registry that is asked before whether it lets the user in, and the user; when it refuses the
            lines, nothing is written. None writes them as they are.
    """
    files = {**_setup(setup), "lines": lines.encode()}
    return Call("registry-login", script("registry-login"), tried_at or (), files)


def parse_login(stdout: str) -> tuple[Credentials, Manifest | None]:
    """The file as it is now, without its secrets, and what came of asking the registry; None when it was not asked.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete:
        raise ValueError("the answer broke off")
    return answer.credentials, manifest_of(answer) if answer.has("check") else None


class Verdict(str, Enum):
    """What a registry said to a user's key."""

    RIGHT = "right"
    WRONG = "wrong"
    UNTRIED = "untried"


def verdict_of(found: Manifest, registry: str) -> tuple[Verdict, str]:
    """Whether a registry took the key of its own line, and why that cannot be told, or what it said."""
    asked, words = found.url.removesuffix("/v2/"), found.words.rstrip(".")
    if not found.curl:
        return Verdict.UNTRIED, "there is no curl on the login host"
    if not found.first:
        return Verdict.UNTRIED, f"{asked} was not reached from the login host{f' ({words})' if words else ''}"
    if found.first == 200:
        return Verdict.UNTRIED, f"{registry} lets anybody in, whatever the key; only an image shows what it opens"
    if found.first != 401:
        return Verdict.UNTRIED, f"{registry} answered {found.first}"
    machine, own = found.line.partition(" ")[0], machine_of(registry)
    if found.token and machine not in (own, NGC_AUTHENTICATOR if own == NGC else own):
        return (
            Verdict.UNTRIED,
            f"{registry} sends clients to {found.realm} for a token, and the line for that host counts",
        )
    who = found.realm or registry
    if (found.token or found.code) in (401, 403):
        return Verdict.WRONG, f"{who} answered {found.token or found.code}"
    if found.code == 200:
        return Verdict.RIGHT, ""
    if found.token == 200:
        return Verdict.UNTRIED, f"{registry} answered {found.code} to the token that {who} had given for it"
    return Verdict.UNTRIED, f"{who} answered {found.token or found.code}"


def check_call(image: Image, setup: str = "") -> Call:
    """Ask for an image's manifest from the cluster's side; read the answer with `parse_manifest`.

    Raises:
        ValueError: the image is a file.
    """
    args = registry_arguments(image)
    return Call("registry-check", script("registry-check"), args, _setup(setup))


def registry_arguments(image: Image) -> tuple[str, str, str, str]:
    """Registry, repository, tag or digest, and user, as the scripts ask for a manifest.

    Raises:
        ValueError: the image is a file.
    """
    if image.is_file:
        raise ValueError(f"{image.path} is a file on the cluster, not an image in a registry")
    registry = registry_host(image.registry)
    on_hub = registry == _HUB
    repository = f"library/{image.repository}" if on_hub and "/" not in image.repository else image.repository
    return registry, repository, image.digest or image.tag or "latest", image.user


def registry_host(registry: str) -> str:
    """The host that has a registry's API: Docker Hub's is another than its name."""
    return _HUB if registry in ("", DOCKER_HUB, "index.docker.io", _HUB) else registry


def parse_manifest(stdout: str) -> Manifest:
    """What came of it.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete or not answer.has("check"):
        raise ValueError("the answer broke off")
    return manifest_of(answer)


def manifest_of(answer: Answer) -> Manifest:
    """What an answer's frame `check` says."""
    return Manifest(
        url=answer.fact("check", "url"),
        first=_number(answer, "first"),
        code=_number(answer, "code"),
        file=answer.fact("check", "file"),
        line=answer.fact("check", "line").strip(),
        token=_number(answer, "token"),
        realm=answer.fact("check", "realm"),
        digest=answer.fact("check", "digest"),
        words=answer.complaints.get("check", ""),
        curl="no-curl" not in answer.facts["check"],
        tags=answer.all("check", "tag"),
        sizes={arch: int(size) for arch, _, size in (line.partition(" ") for line in answer.all("check", "size"))},
    )


def told_tags(wanted: str, tags: Sequence[str]) -> str:
    """Which tags there are beside the one that was asked for, the likeliest first; empty when there are none."""
    if not tags:
        return ""
    if len(tags) <= _SHOWN_TAGS:
        return f"Its tags are {', '.join(tags)}."
    near = difflib.get_close_matches(wanted, tags, _SHOWN_TAGS, cutoff=0.3)
    shown = dict.fromkeys([*near, *(tag for tag in ("latest",) if tag in tags), *reversed(tags)])
    return f"It has {len(tags)} tags, among them {', '.join(list(shown)[:_SHOWN_TAGS])}."


def _number(answer: Answer, key: str) -> int:
    text = answer.fact("check", key)
    return int(text) if text.isdecimal() else 0


def _setup(line: str) -> dict[str, bytes | Path]:
    return {"setup": f"{line}\n".encode()} if line.strip() else {}
