"""Inputs of a job: from where its specification has them to paths of this machine, each brought once."""

import json
import os
import re
import shutil
from types import MappingProxyType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from towline.runner import archives, references
from towline.runner.places import Place, in_place, mounted_place, name_of, own_place, publish, show_at
from towline.runner.references import Selection, selection_of
from towline.runner.telling import say
from towline.runner.turns import Queue, Who
from towline.stager.bring import Bringing, Meter, replace
from towline.stager.problems import Problem, of_system
from towline.stager.source import Found
from towline.stager.sources import find, source_of

_NOTHING: Mapping[str, Any] = MappingProxyType({})
MODEL_SUFFIXES = (".pth", ".pth.tar", ".pt", ".ckpt", ".hdf5", ".tlt")
"""Files that keys of pretrained models mean, where TAO finds one in what it has brought."""
_MOUNTED = ("s3", "gs")
_REPOSITORIES = ("hf", "hf_model", "hf_dataset", "ngc")
"""Schemes whose archives are what their readers want, such as shards of WebDataset."""


class Wanted(NamedTuple):
    """One input.

    Attributes:
        key: where it stands: a dotted key (`data.train[0].images`), the name of an argument, or a path.
        uri: where its data is: a URI, or a path that is used as it is.
        target: the path where it has to be; empty for a place of its own below the folder.
        settings: what the job declares of it: `selective`, `extract_to_parent`, `container_path`, and `extract`,
            whether archives are extracted (those of repositories of models and datasets are not by themselves).
        is_model: whether a directory with one model file stands for that file, as keys of pretrained models mean it.
    """

    key: str
    uri: str
    target: str = ""
    settings: Mapping[str, Any] = _NOTHING
    is_model: bool = False


def fetch(
    wanted: Sequence[Wanted],
    folder: str,
    env: Mapping[str, str],
    mount_path: str = "",
    say: Callable[[str], None] = say,
) -> Dict[str, str]:
    """Have every input on this machine's file systems.

    Those that are there (plain paths, `lustre://`, `slurm://`, `file://`) are used in place. The others are brought
    once on each file system, however many processes of however many nodes ask; the others wait for it.

    Args:
        wanted: the inputs.
        folder: where they come to; nodes of one job have the same where they share it.
        env: the environment: keys, endpoints, and what names this process.
        mount_path: directory in which `s3://BUCKET/KEY` is kept as `BUCKET/KEY` for all jobs; empty for none.
        say: tells the user a line.

    Returns:
        Key → path.

    Raises:
        Problem: one cannot be had.
    """
    fetching = Fetching(folder, env, mount_path, say)
    later = [each for each in wanted if selection_of(each.settings)]
    paths = {each.key: fetching.one(each, []) for each in wanted if each not in later}
    for each in later:
        selection = selection_of(each.settings)
        assert selection is not None  # noqa: S101  that is how they were chosen
        paths[each.key] = fetching.one(each, references.references(_annotation(selection, each.key, paths), selection))
    return paths


def _annotation(selection: Selection, key: str, paths: Mapping[str, str]) -> str:
    if selection.annotation not in paths:
        words = "{}: its annotation {!r} is no other input; declare that one, too"
        raise Problem("names", words.format(key, selection.annotation))
    return paths[selection.annotation]


class Copy(NamedTuple):
    """What is made once.

    Attributes:
        uri: what is brought.
        place: where the result is.
        archive: whether it is an archive that is extracted.
        beside: where the archive itself is kept; empty for nowhere.
        extract: whether archives that a directory holds are extracted.
        to_parent: whether those are extracted into their own directory.
        files: the only ones wanted of a directory; empty for all.
    """

    uri: str
    place: Place
    archive: bool
    beside: str
    extract: bool
    to_parent: bool
    files: Tuple[str, ...]


class Fetching:
    """The inputs of one job, one after the other; each has many connections of its own."""

    def __init__(self, folder: str, env: Mapping[str, str], mount: str, say: Callable[[str], None]) -> None:
        self._folder = os.path.abspath(folder)
        self._env = env
        self._mount = mount
        self._say = say
        self._who = Who.me(env)

    def one(self, wanted: Wanted, files: Sequence[str]) -> str:
        """The path of one input.

        Args:
            wanted: the input.
            files: the only ones that are wanted of a directory; empty for all.

        Raises:
            Problem: it cannot be had.
        """
        path = in_place(wanted.uri)
        if not path:
            copy = self._copy(wanted, tuple(files))
            path = copy.place.data
            self._have(copy)
            if wanted.is_model:
                path = model_in(path)
        target = self._target(wanted, path)
        if not target:
            return path
        if archives.is_archive(target) and not archives.is_archive(path):  # a path that names the archive itself
            show_at(archives.stem_of(target), path)
            path = os.path.join(os.path.dirname(path), name_of(wanted.uri))
        show_at(target, path)
        return target

    def _target(self, wanted: Wanted, path: str) -> str:
        """Where the job wants to see it; empty for wherever it is."""
        base = wanted.settings.get("container_path")
        if wanted.target or not isinstance(base, str) or not base:
            return wanted.target
        number = re.search(r"\[(\d+)\]$", wanted.key)  # each of a list has a directory of its own
        base = os.path.join(base, number.group(1)) if number else base
        is_folder = os.path.isdir(path) and not archives.is_archive(name_of(wanted.uri))
        return base if is_folder else os.path.join(base, os.path.basename(path))

    def _copy(self, wanted: Wanted, files: Tuple[str, ...]) -> Copy:
        settings, name = wanted.settings, name_of(wanted.uri)
        extract = bool(settings.get("extract", wanted.uri.partition("://")[0] not in _REPOSITORIES))
        to_parent = bool(settings.get("extract_to_parent", False))
        archive = extract and archives.is_archive(name)
        if archive and wanted.target:
            archive = archives.is_archive(wanted.target)
        words = ["" if extract else "as it is", "to parent" if to_parent else "", *files]
        words.append("kept" if archive and wanted.target else "")
        place = own_place(wanted.uri, self._folder, self._env, words)
        if self._mount and wanted.uri.partition("://")[0] in _MOUNTED:
            place = self._mounted(wanted.uri, files) or place
        beside = place.data if archive and (wanted.target or place.is_shared) else ""
        if archive:
            place = place._replace(data=archives.stem_of(place.data))
        return Copy(wanted.uri, place, archive, beside, extract, to_parent, files)

    def _mounted(self, uri: str, files: Tuple[str, ...]) -> Optional[Place]:
        """Where the mount has it; None where it would have only a part of a directory that is wanted in part."""
        place = mounted_place(uri, self._mount)
        return place if not files or references.are_there(place.data, list(files)) else None

    def _have(self, copy: Copy) -> None:
        if copy.place.is_there():
            return
        queue = Queue(copy.place.control, self._who, self._say)
        try:
            queue.make_once(copy.uri, copy.place.is_there, lambda work: self._make(copy, work))
        except OSError as error:
            raise of_system(error) from None

    def _make(self, copy: Copy, work: str) -> None:
        """Bring it below a working directory, and give it its name when it is whole."""
        data = os.path.join(work, "data")
        kept = bool(copy.beside) and os.path.isfile(copy.beside)
        found = Found("file", []) if kept else self._brought(copy, work)
        if copy.archive:
            data = self._extracted(copy, work, copy.beside if kept else self._renamed(copy, work))
        elif copy.extract and os.path.isdir(data) and archives.extract_below(data, copy.to_parent):
            self._say("extracted the archives of {}".format(copy.uri))
        facts = {"uri": copy.uri, "version": found.version, "files": len(found.entries), "bytes": found.bytes}
        replace(copy.place.note, json.dumps(facts))
        publish(data, copy.place.data)
        self._say("brought {} to {}".format(copy.uri, copy.place.data))

    def _renamed(self, copy: Copy, work: str) -> str:
        """The archive that was brought, under its own name."""
        data, archive = os.path.join(work, "data"), _archive(copy, work)
        if os.path.isdir(data):
            raise Problem("names", "{} has the name of an archive and is a directory".format(copy.uri))
        os.makedirs(os.path.dirname(archive), exist_ok=True)
        os.rename(data, archive)
        return archive

    def _extracted(self, copy: Copy, work: str, archive: str) -> str:
        """What an archive holds, whole."""
        whole = os.path.join(work, "extracted")
        shutil.rmtree(whole, ignore_errors=True)
        archives.extract(archive, whole, copy.uri)
        if copy.beside and archive != copy.beside:
            publish(archive, copy.beside)
        return whole

    def _brought(self, copy: Copy, work: str) -> Found:
        """Bring the data to `work/data`."""
        _remove_links(os.path.join(work, "data"))
        if os.path.exists(_archive(copy, work)):  # an earlier turn was cut off while it extracted
            os.replace(_archive(copy, work), os.path.join(work, "data"))
        source = source_of(copy.uri, (), self._env)
        found = source.take(os.path.join(work, "data"))
        if found is not None:
            return found
        found = find(source)
        if copy.files:
            found = references.chosen(found, list(copy.files), copy.uri)
        self._say("bringing {}: {} files, {} bytes".format(copy.uri, len(found.entries), found.bytes))
        Bringing(source, work, Meter("")).all(found)
        return found


def _archive(copy: Copy, work: str) -> str:
    """An archive under its own name, which says what it holds."""
    return os.path.join(work, "archive", name_of(copy.uri))


def _remove_links(folder: str) -> None:
    """Links are never brought, only extracted: an earlier turn was cut off then."""
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if os.path.islink(os.path.join(place, name)):
                os.unlink(os.path.join(place, name))


def model_in(path: str) -> str:
    """What stands for a model: its only file of weights; the directory where there are none, or a whole repository."""
    if not os.path.isdir(path):
        return path
    if os.path.exists(os.path.join(path, "config.json")):  # what `from_pretrained` reads is a directory
        return path
    found: List[str] = []
    for place, _, names in os.walk(path):
        found += [os.path.join(place, name) for name in names if name.endswith(MODEL_SUFFIXES)]
    return min(found, key=lambda each: (each.count("/"), each)) if found else path
