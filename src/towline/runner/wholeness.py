"""Whether a checkpoint is whole: one that was being written when its job ended must not be gone on from.

Only headers and tables of contents are read. What PyTorch writes is a zip archive with its table at the end, and a
pickle with the name `data.pkl`; safetensors begin with their table ("Safetensors format": 8 bytes with its length, JSON
with the offsets of all tensors). Of another format, such as PyTorch's before 1.6, it cannot be seen.
"""

import json
import os
import re
import struct
import zipfile
from typing import Any, Dict, Iterator, List, Set, Tuple, cast

FILES = (".pth", ".pth.tar", ".pt", ".ckpt", ".safetensors")
"""Names of files that trainers write their state to."""
_PARTS = (*FILES, ".bin", ".distcp")
_UNFINISHED = (".tmp", ".incomplete", ".partial", ".part")
_ZIP = b"PK\x03\x04"
_LOCAL = 30
"""Bytes of a zip member's own header before its name."""
_MOST = 100 << 20
"""Bytes of a table of safetensors at most, by the format's definition."""
_RANK = re.compile(r"^(.*?)(?:^|_)rank_?(\d+)(.*)$")
_INDEX = ".index.json"


def flaw_of(path: str) -> str:
    """Why a file or directory is no whole checkpoint; empty when it is one."""
    try:
        return _of_directory(path) if os.path.isdir(path) else _of_file(path)
    except OSError as error:
        return "it cannot be read: {}".format(error.strerror or error)


def _of_file(path: str) -> str:
    if path.endswith(".safetensors"):
        return _of_safetensors(path)
    with open(path, "rb") as file:
        begin = file.read(len(_ZIP))
    if not begin:
        return "it is empty"
    if begin != _ZIP:
        return "it cannot be seen whether it is whole: it has no format of PyTorch 1.6 or later"
    return _of_zip(path)


def _of_zip(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
            members = archive.infolist()
            for member in members:
                file.seek(member.header_offset)
                header = file.read(_LOCAL)
                name, extra = struct.unpack("<HH", header[26:30]) if len(header) == _LOCAL else (0, 0)
                end = member.header_offset + _LOCAL + name + extra + member.compress_size
                if header[:4] != _ZIP or end > archive.start_dir:
                    return "{} in it is damaged".format(member.filename)
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
        return "it ends too early ({})".format(error)
    names = [member.filename for member in members]
    if not any(name.endswith("/data.pkl") for name in names):
        return "it is an archive, and none of PyTorch's"
    if any("/code/" in name for name in names):
        return "it is a program (TorchScript) and has no state of a trainer"
    return ""


def _of_safetensors(path: str) -> str:
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        begin = file.read(8)
        length = struct.unpack("<Q", begin)[0] if len(begin) == 8 else 0
        if not 0 < length <= min(_MOST, size - 8):
            return "it ends too early, or has no table"
        try:
            facts = json.loads(file.read(length).decode("utf-8"))
            tensors = [each for name, each in dict(facts).items() if name != "__metadata__"]
            end = max([int(each["data_offsets"][1]) for each in tensors] or [0])
        except (ValueError, TypeError, KeyError, IndexError):
            return "its table is damaged"
    return "" if 8 + length + end == size else "it has {} bytes and should have {}".format(size, 8 + length + end)


def _of_directory(path: str) -> str:
    """A directory is whole with all of its parts: those that its own tables name, and one for each rank."""
    names = list(_names(path))
    parts = [name for name in names if name.endswith(_PARTS)]
    flaw = _of_names(names, parts) or _of_indices(path, names)
    if flaw:
        return flaw
    for name in parts:
        place = os.path.join(path, name)
        if name.endswith(".distcp"):
            flaw = "" if os.path.getsize(place) else "it is empty"
        elif not name.endswith(".bin") or _begins_as_zip(place):
            flaw = _of_file(place)
        if flaw:
            return "{}: {}".format(name, flaw)
    return ""


def _names(path: str) -> Iterator[str]:
    for place, _, names in os.walk(path):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), path)


def _of_names(names: List[str], parts: List[str]) -> str:
    """What the names alone tell."""
    if not parts:
        return "it has no file of a checkpoint"
    unfinished = [name for name in names if name.endswith(_UNFINISHED)]
    if unfinished:
        return "{} was being written".format(unfinished[0])
    for folder in {os.path.dirname(name) for name in parts if name.endswith(".distcp")}:
        if os.path.join(folder, ".metadata") not in names:  # written last, by torch.distributed.checkpoint
            return "{} is missing".format(os.path.join(folder, ".metadata"))
    for name in names:  # Transformers' Trainer writes the one at first, the other one at last
        state = os.path.join(os.path.dirname(name), "trainer_state.json")
        if os.path.basename(name) == "training_args.bin" and state not in names:
            return "{} is missing".format(state)
    return _of_ranks(parts)


def _of_ranks(parts: List[str]) -> str:
    """Whether all ranks have written: `model_rank_0.pth`, `optimizer_rank_0.pth` … go together by folder and ending."""
    groups: Dict[Tuple[str, str], Dict[str, Set[int]]] = {}
    for name in parts:
        found = _RANK.match(os.path.basename(name))
        if found:
            group = groups.setdefault((os.path.dirname(name), found.group(3)), {})
            group.setdefault(found.group(1), set()).add(int(found.group(2)))
    for (folder, _), group in sorted(groups.items()):
        most = max(number for numbers in group.values() for number in numbers)
        for kind, numbers in sorted(group.items()):
            missing = sorted(set(range(most + 1)) - numbers)
            if missing and numbers != {0}:  # what the first rank alone writes
                return "{} of rank {} is missing".format(os.path.join(folder, kind) or "the file", missing[0])
    return ""


def _of_indices(path: str, names: List[str]) -> str:
    """Whether all shards are there that a table names (`model.safetensors.index.json`)."""
    for index in (name for name in names if name.endswith(_INDEX)):
        try:
            with open(os.path.join(path, index), encoding="utf-8") as file:
                facts: Any = json.load(file)
            shards = set(cast("Dict[str, str]", facts["weight_map"]).values())
        except (ValueError, KeyError, TypeError, AttributeError):
            return "{} is damaged".format(index)
        for shard in sorted(shards):
            if os.path.join(os.path.dirname(index), shard) not in names:
                return "{} is missing".format(shard)
    return ""


def _begins_as_zip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(len(_ZIP)) == _ZIP
