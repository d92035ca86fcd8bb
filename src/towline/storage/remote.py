"""Data that lies elsewhere, and its staged copies on the shared file system.

`<place>/<name>/data` is a staged file or directory, `note` what is recorded of it, `manifest` its files with size and
checksum. A name is the URI in readable form, a hash of it and of where it was asked, and the version: a hash of every
file's path, size and checksum. So what changed at its source is another copy, and jobs go on with the one that they
began with.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from towline.models.parts import is_remote as is_remote
from towline.models.parts import scheme_of
from towline.slurm.calls import Call, setup_files
from towline.slurm.doctor import Answer, parse_answer
from towline.slurm.preparation import Preparation
from towline.slurm.scripts import script
from towline.slurm.space import Space, parse_space

UNKNOWN_VERSION = "unknown"
_READABLE, _HASH, _VERSION = 80, 10, 16
_AWS_KEYS = ("ACCESS_KEY", "SECRET_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
SECRETS: Mapping[str, tuple[str, ...]] = {
    "s3": _AWS_KEYS,
    "gs": _AWS_KEYS,
    "hf": ("HF_TOKEN",),
    "hf_model": ("HF_TOKEN",),
    "hf_dataset": ("HF_TOKEN",),
    "ngc": ("NGC_KEY", "NGC_API_KEY", "NGC_CLI_API_KEY"),
}
"""Scheme → the secrets that give access to it, under the names of TAO and of its own tools."""
VARIABLES = (
    "S3_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "CLOUD_REGION",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "HF_ENDPOINT",
    "STORAGE_EMULATOR_HOST",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
"""Variables of a job's environment that say where its data is asked for."""
_WHERE = ("S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "HF_ENDPOINT", "STORAGE_EMULATOR_HOST")


@dataclass(frozen=True)
class Problem:
    """Why a source does not give its data.

    Attributes:
        kind: `credentials`, `not-found`, `network`, `space`, `changed`, `damaged`, `names`, `tool`, `stopped`,
            `no-python`, `staging-python` (the one that the profile names) or `other`.
        why: the source's own words, or what is known.
        fix: what to do.
    """

    kind: str
    why: str
    fix: str


@dataclass(frozen=True)
class Copy:
    """A staged copy.

    Attributes:
        name: its directory's name.
        owner: uid.
        made: seconds since 1970 on the file server's clock.
        notes: what is recorded of it: `uri`, `version`, `kind`, `files`, `size`, `made`, `slurm`.
    """

    name: str
    owner: int
    made: int
    notes: Mapping[str, str]


@dataclass(frozen=True)
class Found:
    """What a login host says of one URI.

    Attributes:
        uid: the user's own.
        copies: those that are whole, newest first.
        version: what the source has now; empty when it did not say.
        kind: `file` or `directory`.
        files, size: how many, and bytes.
        problem: why the source did not say; None when it did.
        space: what limits writing where copies are.
    """

    uid: int
    copies: tuple[Copy, ...] = ()
    version: str = ""
    kind: str = ""
    files: int = 0
    size: int = 0
    problem: Problem | None = None
    space: Space | None = None

    def copy(self, version: str = "") -> Copy | None:
        """The newest copy, of that version if one is given, that is safe to use."""
        for each in self.copies:
            if each.owner in (0, self.uid) and version in ("", each.notes.get("version")):
                return each
        return None


@dataclass(frozen=True)
class Access:
    """What a source is asked with.

    Attributes:
        variables: public ones.
        secrets: sh text with the values of the others; empty for none.
    """

    variables: Mapping[str, str]
    secrets: bytes = field(default=b"", repr=False)

    @property
    def files(self) -> dict[str, bytes]:
        """What the program's environment is read from."""
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in self.variables.items())
        return {"variables": "".join(lines).encode()}


def secrets_of(uris: Sequence[str]) -> tuple[str, ...]:
    """Names of the secrets that may give access to these URIs."""
    return tuple(dict.fromkeys(name for uri in uris for name in SECRETS.get(scheme_of(uri), ())))


def stem_of(uri: str, variables: Mapping[str, str]) -> str:
    """What the names of all of a URI's copies begin with."""
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "+", uri.partition("?")[0])[:_READABLE].strip("+.-")
    where = "\n".join([uri, *(variables.get(name, "") for name in _WHERE)])
    return f"{readable}+{hashlib.sha256(where.encode()).hexdigest()[:_HASH]}"


def name_of(uri: str, variables: Mapping[str, str], version: str = "") -> str:
    """The name of one copy's directory."""
    return f"{stem_of(uri, variables)}+{version[:_VERSION] or UNKNOWN_VERSION}"


def find_call(place: str, uris: Sequence[str], program: bytes, python: str, access: Access, setup: str = "") -> Call:
    """Ask what is staged of each URI, and what its source has now; read the answer with `parse_found`."""
    lines = "".join(f"{stem_of(uri, access.variables)} {uri}\n" for uri in uris)
    files = {**setup_files(setup), **access.files, "inputs": lines.encode(), "stager": program}
    if access.secrets:
        files["secrets"] = access.secrets
    return Call("data-find", script("data-find"), (place, python), files, repeats=True)


def parse_found(stdout: str, uris: Sequence[str]) -> tuple[Found, ...]:
    """What was found, one for each URI.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    uid = answer.fact("inputs", "uid")
    if not answer.complete or not uid.isdecimal():
        raise ValueError("the answer broke off")
    notes: dict[str, dict[str, str]] = {}
    for line in answer.all("inputs", "note"):
        name, _, rest = line.partition(" ")
        key, _, value = rest.partition("=")
        notes.setdefault(name, {})[key] = value
    return tuple(_found(answer, int(uid), number, uri, notes) for number, uri in enumerate(uris))


def _found(answer: Answer, uid: int, number: int, uri: str, notes: Mapping[str, Mapping[str, str]]) -> Found:
    mark = f"{number} "
    copies: list[Copy] = []
    for line in answer.all("inputs", "have"):
        if line.startswith(mark):
            _, name, owner, made = line.split(" ")
            copies.append(Copy(name, int(owner), int(made), notes.get(name, {})))
    lines = [line.removeprefix(mark) for line in answer.all("inputs", "now") if line.startswith(mark)]
    facts = {key: value for key, _, value in (line.partition("=") for line in lines)}
    space = answer.reply("space")
    return Found(
        uid=uid,
        copies=tuple(sorted(copies, key=lambda each: each.made, reverse=True)),
        version=facts.get("version", ""),
        kind=facts.get("kind", ""),
        files=_count(facts.get("files", "")),
        size=_count(facts.get("size", "")),
        problem=None if "version" in facts else _unasked(answer, uri, facts.get("error", "")),
        space=parse_space(space.out) if space else None,
    )


def _unasked(answer: Answer, uri: str, error: str) -> Problem:
    if error:
        kind, _, text = error.partition(" ")
        return problem_of(kind, text, uri)
    if answer.has("inputs") and any(True for _ in answer.all("inputs", "said")):
        return Problem("other", answer.all("inputs", "said")[-1], "Look at the login host's Python.")
    return _lacking(answer.fact("inputs", "no-python"), "the login host", " to ask with")


def _lacking(python: str, where: str, what_for: str = "") -> Problem:
    """There is no Python: the one that the profile names, or any."""
    if not python:
        return Problem("no-python", f"there is no Python 3.6 on {where}{what_for}", _NO_PYTHON)
    why = f"`staging_python` names {python}, which is not there on {where}, or is no Python 3.6 or later"
    return Problem("staging-python", why, "Correct `staging_python`, or leave it out for the host's own Python.")


_NO_PYTHON = "Set `staging_python` to one, or `staging_image` to an image that has it."
_FIXES = {
    "not-found": "Correct the URI; names count with every letter.",
    "network": "Try again in a while; nodes without a way out need `import_partition` set to some that have one.",
    "space": "Make room there (`towline gc`), or set `data_cache` to another directory.",
    "changed": "Submit the job again: it gets what is there now.",
    "damaged": "Run it again: what came was not what the source says that it has.",
    "names": "Rename it at the source, or name a part of the source.",
}
_KEYS_FIX = {
    "s3": "Give keys with --secret ACCESS_KEY --secret SECRET_KEY, or have them in ~/.aws/credentials on the cluster.",
    "gs": "Give the store's HMAC keys with --secret ACCESS_KEY --secret SECRET_KEY.",
    "ngc": "Give the key with --secret NGC_KEY.",
    "https": "Give the host a line in ~/.netrc on the cluster.",
}
_TOKEN_FIX = "Give a token with --secret HF_TOKEN that may read it; gated data also wants its terms accepted."  # noqa: S105


def problem_of(kind: str, text: str, uri: str) -> Problem:
    """What the program says of a source, with what to do."""
    scheme = scheme_of(uri)
    if kind == "credentials":
        return Problem(kind, text, _KEYS_FIX.get(scheme, _TOKEN_FIX if scheme.startswith("hf") else _KEYS_FIX["https"]))
    if kind == "tool":
        fix = "Install it on the nodes of `import_partition`, or bring the data with `towline push`."
        return Problem(kind, text, fix)
    return Problem(kind, text, _FIXES.get(kind, "Look at the reason, and run it again."))


_ERROR = re.compile(r"\[ERROR\] ([a-z-]+): (.*)")


def failure_of(found: Preparation) -> Problem | None:
    """What the end of a staging job means; None when it did not fail."""
    if not found.failed:
        return None
    end = found.end or {}
    stage = end.get("stage", "stopped")
    if stage == "stopped":
        why = f"its job {found.slurm_id} was ended before it was done; what it has brought stays"
        return Problem("stopped", why, "Run it again: it goes on; more `staging_time` or `import_memory` may help.")
    if stage == "no-python":
        where = "`staging_image`" if end.get("container") else end.get("host", "the node")
        return _lacking(end.get("python", ""), where)
    said = next((match for line in reversed(found.log) if (match := _ERROR.match(line))), None)
    if said:
        return problem_of(said[1], said[2], found.reference)
    last = found.log[-1] if found.log else f"it ended with exit code {end.get('code')}"
    kind = "space" if stage in ("space", "keep") else "other"
    return problem_of(kind, last, found.reference)


def delivery_failure(found: Preparation, uris: Sequence[str]) -> Problem | None:
    """What the end of a job means that was to take results away; None when it did not fail."""
    if not found.failed:
        return None
    stage = (found.end or {}).get("stage", "")
    if stage == "not-done":
        return Problem("not-done", "the job did not succeed", "Its results are still there: `towline results`.")
    if stage == "unfinished":
        return Problem("other", "the job's end was not recorded", "Bring them with `towline results --pull`.")
    return failure_of(replace(found, reference=next(filter(is_remote, uris), "")))


def data_file(
    uri: str, name: str, version: str, tools: Sequence[str], python: str, container: Sequence[str], setup: str = ""
) -> bytes:
    """What `data-job.sh` reads: what it is to bring and how, as sh text.

    Args:
        uri: the data.
        name: of the copy.
        version: what the source had when it was asked; empty for not known.
        tools: programs of the site in place of Towline's own, or `fsspec`.
        python: the Python that runs the program; empty for the node's.
        container: a command that runs another one in a container; empty for none.
        setup: the profile's shell line, which may put the site's tools on the PATH.
    """
    values = {
        "data_uri": uri,
        "data_name": name,
        "data_version": version or "-",
        "data_tools": ",".join(tools) or "-",
        "data_python": python,
        "data_notes": f"uri={uri}\n",
        "data_setup": setup,
    }
    lines = "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items())
    return f"{lines}set -- {shlex.join(container)}\n".encode()


def container_command(options: Sequence[str], cpus: int) -> tuple[str, ...]:
    """The `srun` that runs the program in an image; `options` are the runtime's own."""
    return ("srun", "--nodes=1", "--ntasks=1", f"--cpus-per-task={cpus}", *options)


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else 0
