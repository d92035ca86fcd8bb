"""Archives of others, extracted so that nothing lands outside: whole, or not at all.

An archive that holds an absolute name, `..`, a link that leads out of it, a device or a pipe is refused as a whole, not
passed over in part: nobody could tell what of a data set is missing. Links that stay inside are made. Such a link has
`..` only at its beginning, where it climbs from a real directory; after a name, `..` could mean the parent of what
another link points to.
"""

import os
import shutil
import tarfile
import zlib
from typing import Any, Dict

from towline.stager.problems import Problem, of_system

SUFFIXES = (".tar.gz", ".tgz", ".tar")
"""Names that TAO takes for archives."""
_PIECE = 1 << 20


def is_archive(name: str) -> bool:
    """Whether a file of that name is extracted; PyTorch's `.pth.tar` are no archives."""
    return name.endswith(SUFFIXES) and not name.endswith(".pth.tar")


def stem_of(name: str) -> str:
    """The name of what an archive of that name is extracted to."""
    return next((name[: -len(each)] for each in SUFFIXES if is_archive(name) and name.endswith(each)), name)


def extract(archive: str, target: str, shown: str = "") -> None:
    """Extract into a directory that is not there yet; a single folder in it named like the archive is left out.

    Args:
        archive: the file, under a name that says what it holds.
        target: the directory.
        shown: what people call the archive; its path when not given.

    Raises:
        Problem: it is damaged, wants to leave its directory, or does not fit; then nothing is there.
    """
    fresh = "{}.towline-{}".format(target, os.getpid())
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        os.makedirs(fresh)
        extraction = Extraction(archive, fresh, shown or archive)
        extraction.all()
        os.rename(extraction.root(os.path.basename(stem_of(archive))), target)
    except OSError as error:
        raise of_system(error) from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def extract_below(folder: str, to_parent: bool = False) -> int:
    """Extract every archive that a directory holds, beside itself.

    Args:
        folder: the directory.
        to_parent: whether an archive's files come into its own directory, not into one named like it.

    Returns:
        How many there were.

    Raises:
        Problem: one is refused, or something else has the name of what it holds.
    """
    found = sorted(
        os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if is_archive(name)
    )
    for path in found:
        target = stem_of(path)
        if not to_parent and not os.path.lexists(target):
            extract(path, target)
            continue
        beside = "{}.towline-new".format(path)
        shutil.rmtree(beside, ignore_errors=True)
        extract(path, beside)
        merge(beside, os.path.dirname(path) if to_parent else target)
    return len(found)


def merge(source: str, target: str) -> None:
    """Move what a directory holds into another one.

    Raises:
        Problem: something of that name is there.
    """
    os.makedirs(target, exist_ok=True)
    for name in sorted(os.listdir(source)):
        here, there = os.path.join(source, name), os.path.join(target, name)
        if not os.path.lexists(there):
            os.rename(here, there)
        elif _is_directory(here) and _is_directory(there):
            merge(here, there)
        else:
            raise Problem("names", "{} is there twice: of its own, and in an archive beside it".format(there))
    os.rmdir(source)


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


class Extraction:
    """One archive on its way into an empty directory."""

    def __init__(self, archive: str, folder: str, shown: str) -> None:
        self._archive = archive
        self._shown = shown
        self._folder = folder
        self._kinds: Dict[str, str] = {"": "directory"}
        self._links: Dict[str, str] = {}

    def all(self) -> None:
        """Extract every member.

        Raises:
            Problem: one is refused, or the archive is damaged.
            OSError: something cannot be written.
        """
        try:
            with tarfile.open(self._archive) as tar:
                for member in tar:
                    self._one(tar, member)
                self._require_end(tar)
        except (tarfile.TarError, EOFError, ValueError, zlib.error) as error:
            raise Problem("damaged", "{}: it is no whole archive ({})".format(self._shown, error)) from None
        except OSError as error:
            if error.errno is None:  # gzip's own: bad checksum, not a gzip file
                raise Problem("damaged", "{}: it is no whole archive ({})".format(self._shown, error)) from None
            raise

    def root(self, name: str) -> str:
        """The directory that the archive stands for.

        Raises:
            Problem: a link of it leads out of there.
        """
        top = {path for path in self._kinds if path and "/" not in path}
        if top != {name} or self._kinds[name] != "directory":
            return self._folder
        for path, goal in self._links.items():
            if goal.split("/")[0] != name:
                raise self._refused(path, "is a link that leads out of it")
        return os.path.join(self._folder, name)

    def _one(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._clean(member.name)
        if not path:
            return
        self._make_parents(path)
        place = os.path.join(self._folder, path)
        if member.isdir():
            self._make_directory(path)
            return
        if self._kinds.get(path) == "directory":
            raise self._refused(member.name, "is a directory and something else at once")
        if member.islnk() and self._kinds.get(path) == "file" and self._clean(member.linkname) == path:
            return  # a name for itself
        if os.path.lexists(place):  # a later member of the same name counts
            os.unlink(place)
            self._links.pop(path, None)
        if member.isreg():
            self._copy(tar, member, place)
        elif member.issym():
            self._links[path] = self._inside(path, member.linkname)
            os.symlink(member.linkname, place)
        elif member.islnk():
            self._link(member, place)
        else:
            raise self._refused(member.name, "is a device or a pipe")
        self._kinds[path] = "link" if member.issym() else "file"

    def _clean(self, name: str) -> str:
        """A member's path below the directory; empty for the directory itself."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self._refused(name, "leads out of it")
        return "/".join(parts)

    def _make_parents(self, path: str) -> None:
        parts = path.split("/")
        for end in range(1, len(parts)):
            self._make_directory("/".join(parts[:end]))

    def _make_directory(self, path: str) -> None:
        kind = self._kinds.get(path)
        if kind is None:
            os.mkdir(os.path.join(self._folder, path))
            self._kinds[path] = "directory"
        elif kind != "directory":
            raise self._refused(path, "is a {} and a directory at once".format(kind))

    def _copy(self, tar: tarfile.TarFile, member: tarfile.TarInfo, place: str) -> None:
        source = tar.extractfile(member)
        assert source is not None  # noqa: S101  it is a plain file
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777 if member.mode & 0o100 else 0o666)
        left = member.size
        with os.fdopen(handle, "wb") as file:
            while left:
                piece = source.read(min(left, _PIECE))
                if not piece:
                    raise Problem("damaged", "{}: it ends within {}".format(self._shown, member.name))
                file.write(piece)
                left -= len(piece)

    def _inside(self, path: str, goal: str) -> str:
        """Where a link leads to, below the directory."""
        parts = [part for part in goal.split("/") if part not in ("", ".")]
        here = path.split("/")[:-1]
        while parts and parts[0] == "..":
            if not here:
                raise self._refused(path, "is a link that leads out of it")
            here.pop()
            parts.pop(0)
        if goal.startswith("/") or ".." in parts or "\0" in goal or not goal:
            raise self._refused(path, "is a link that leads out of it")
        return "/".join([*here, *parts])

    def _link(self, member: tarfile.TarInfo, place: str) -> None:
        """Another name of a file that the archive has had already."""
        first = self._clean(member.linkname)
        if self._kinds.get(first) != "file":
            raise self._refused(member.name, "is a link to what is no file of it")
        try:
            os.link(os.path.join(self._folder, first), place)
        except OSError:  # not every file system has such links
            shutil.copyfile(os.path.join(self._folder, first), place)

    def _require_end(self, tar: tarfile.TarFile) -> None:
        """`tarfile` takes a header that is cut off or damaged for the end."""
        file: Any = tar.fileobj
        file.seek(tar.offset)
        rest = bytes(file.read(tarfile.BLOCKSIZE))
        if rest.strip(b"\0") or len(rest) not in (0, tarfile.BLOCKSIZE):
            raise Problem("damaged", "{}: it ends within a member".format(self._shown))
        while file.read(_PIECE):  # the checksum of a compressed one comes last
            pass

    def _refused(self, name: str, why: str) -> Problem:
        return Problem("names", "the archive {} is refused: {!r} in it {}".format(self._shown, name, why))
