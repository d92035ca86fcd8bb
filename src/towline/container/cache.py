"""The cache of images on the shared file system: what they are called there, and what a login host says of them.

`<cache>/<name>.sqsh` is an image, `<cache>/<name>.note` what is recorded of it, `<cache>/imports/<name>` the jobs that
have made it. A name is the reference in readable form, a hash of it, the architecture and the digest, so that a tag
that moved is another file, and jobs go on with the one that they began with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.container.reference import enroot_form, registry_form
from towline.container.registry import Manifest, manifest_of, registry_arguments
from towline.models.image import Image
from towline.slurm.calls import Call
from towline.slurm.doctor import parse_answer
from towline.slurm.scripts import script
from towline.slurm.space import Space, parse_space

UNKNOWN_DIGEST = "unknown"
_READABLE = 100
_MODE = len("-rw-r--r--")
_HASH, _DIGEST = 10, 12
UNPACKED = 2
"""An image's file by its layers in the registry: Enroot does not compress data (`-comp lzo -noD`, enroot.conf), and
most layers are half as large there or less."""
_NAME = re.compile(r"[A-Za-z0-9_.-][A-Za-z0-9_.+-]*")


@dataclass(frozen=True)
class CachedImage:
    """An image in the cache.

    Attributes:
        name: its file's name without `.sqsh`.
        owner: uid.
        size: bytes.
        modified: seconds since 1970 on the file server's clock.
        notes: what is recorded of it: `image`, `arch`, `digest`, `size`, `sha256`, `made`.
        mode: as `ls -l` shows it; empty when it was not asked for.
        user: the owner's name, as the login host knows it.
    """

    name: str
    owner: int
    size: int
    modified: int
    notes: Mapping[str, str]
    mode: str = ""
    user: str = ""

    @property
    def arch(self) -> str:
        """The architecture that its name tells."""
        return self.name.rsplit("+", 2)[-2] if self.name.count("+") > 1 else ""

    @property
    def sound(self) -> bool:
        """Whether the file is as long as it was when it was made and checked."""
        return self.notes.get("size") == str(self.size)

    @property
    def closed(self) -> bool:
        """Whether only its owner can write to it, as far as its mode tells."""
        return len(self.mode) == _MODE and self.mode[5] != "w" and self.mode[8] != "w"


@dataclass(frozen=True)
class Found:
    """What a login host says of one image.

    Attributes:
        uid: the user's own.
        arches: architectures of the nodes, as `uname -m` says them.
        images: what the cache has of it, newest first.
        manifest: what the registry said; None when it was not asked.
        space: what limits writing to the cache; None when it was not told.
        squash: how Enroot makes files there, as `ENROOT_SQUASH_OPTIONS`; empty for its default.
    """

    uid: int
    arches: tuple[str, ...]
    images: tuple[CachedImage, ...]
    manifest: Manifest | None = None
    space: Space | None = None
    squash: str = ""

    def lacking(self, arch: str) -> str:
        """Why the image's file cannot be written to the cache; empty when it can, as far as is known."""
        packed = self.manifest.sizes.get(arch, 0) if self.manifest else 0
        if not packed or self.space is None:
            return ""
        times = 1 if self.squash and "-noD" not in self.squash.split() else UNPACKED
        return self.space.lacking(packed * times // 1024, 2)

    def cached(
        self, arch: str, digest: str = "", owners: Sequence[str] = (), reference: str = ""
    ) -> CachedImage | None:
        """The newest image of that architecture, and of that digest if one is given, that is safe to use.

        Args:
            arch: as `uname -m` says it.
            digest: empty for any.
            owners: other users whose images count, if they alone can write to them and recorded them as this image.
            reference: the image in full.
        """
        wanted = f"+{digest_word(digest)}" if digest else ""
        for image in self.images:
            if image.arch != arch or not image.name.endswith(wanted) or not image.sound:
                continue
            if self.is_own(image) or (image.user in owners and image.closed and image.notes.get("image") == reference):
                return image
        return None

    def is_own(self, image: CachedImage) -> bool:
        """Whether an image belongs to the user, or to root."""
        return image.owner in (0, self.uid)


def stem_of(image: Image) -> str:
    """What the names of all of an image's files begin with.

    Raises:
        ValueError: the image is a file.
    """
    full = registry_form(image)
    tagged = f"{full} {image.tag} {image.user}"  # of one image by digest, and of what two users may see
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "+", full.partition("@")[0])[:_READABLE].strip("+.")
    return f"{readable}+{hashlib.sha256(tagged.encode()).hexdigest()[:_HASH]}"


def name_of(image: Image, arch: str, digest: str = "") -> str:
    """The name of an image's file, without `.sqsh`.

    Raises:
        ValueError: the image is a file.
    """
    return f"{stem_of(image)}+{arch}+{digest_word(image.digest or digest)}"


def digest_word(digest: str) -> str:
    """The part of a name that stands for a digest."""
    return digest.partition(":")[2][:_DIGEST] or UNKNOWN_DIGEST


def check_name(name: str) -> str:
    """The name itself if it can be one.

    Raises:
        ValueError: it cannot.
    """
    if not _NAME.fullmatch(name) or name.startswith("."):
        raise ValueError(f"{name!r} is not the name of an image in the cache")
    return name


@dataclass(frozen=True)
class Nodes:
    """Which nodes a job may get, as far as it says so.

    Attributes:
        partitions: one of these.
        inside, outside: lists of nodes as Slurm writes them; empty for any, or none.
        features: all of these.
        gpu: type of their GPUs; empty for any.
    """

    partitions: Sequence[str] = ()
    inside: str = ""
    outside: str = ""
    features: Sequence[str] = ()
    gpu: str = ""

    @property
    def file(self) -> bytes:
        """What `image-find.sh` reads."""
        lines = [
            ("in", self.inside),
            ("out", self.outside),
            ("gpu", self.gpu),
            *(("feature", x) for x in self.features),
        ]
        return "".join(f"{kind} {word}\n" for kind, word in lines if word).encode()


def find_call(cache: str, image: Image, nodes: Nodes, *, ask: bool, setup: str = "") -> Call:
    """Ask what the cache has of an image, what its registry says, and what the nodes are; read it with `parse_found`.

    Args:
        cache: the directory of images.
        image: a registry's. What a digest names never changes: its registry is asked only while the cache has none.
        nodes: those that the job may get.
        ask: whether its registry is asked at all.
        setup: the profile's shell line.

    Raises:
        ValueError: the image is a file.
    """
    word = "no" if not ask else "absent" if image.digest else "yes"
    args = (cache, stem_of(image), word, ",".join(nodes.partitions), *registry_arguments(image))
    return Call("image-find", script("image-find"), args, {**_setup(setup), "asked": nodes.file})


def parse_found(stdout: str) -> Found:
    """What was found.

    Raises:
        ValueError: the answer is not whole.
    """
    answer = parse_answer(stdout)
    if not answer.complete or not answer.fact("images", "uid").isdecimal():
        raise ValueError("the answer broke off")
    notes: dict[str, dict[str, str]] = {}
    for line in answer.all("images", "note"):
        name, _, rest = line.partition(" ")
        key, _, value = rest.partition("=")
        notes.setdefault(name, {})[key] = value
    images = [_cached(line, notes) for line in answer.all("images", "file")]
    space = answer.reply("space")
    arches = answer.all("images", "arch") or (answer.fact("images", "machine"),)
    return Found(
        uid=int(answer.fact("images", "uid")),
        arches=arches,
        images=tuple(sorted(images, key=lambda each: each.modified, reverse=True)),
        manifest=manifest_of(answer) if answer.has("check") else None,
        space=parse_space(space.out) if space else None,
        squash=answer.fact("images", "squash"),
    )


def _cached(line: str, notes: Mapping[str, Mapping[str, str]]) -> CachedImage:
    name, owner, size, modified, mode, user = [*line.split(" "), "", ""][:6]
    return CachedImage(name, int(owner), int(size), int(modified), notes.get(name, {}), mode, user)


def image_file(image: Image, name: str, arch: str, digest: str) -> bytes:
    """What `image-job.sh` reads: what it is to make, as sh text.

    Raises:
        ValueError: the image is a file.
    """
    notes = f"image={registry_form(image)}\narch={arch}\ndigest={image.digest or digest}\n"
    values = {"image_uri": enroot_form(image), "image_arch": arch, "image_name": name, "image_notes": notes}
    # None of these can hold a quotation mark: an image's grammar has none, and the others are words of the cluster.
    if any("'" in value for value in values.values()):
        raise ValueError(f"{registry_form(image)} cannot be passed on to a job")
    return "".join(f"{key}='{value}'\n" for key, value in values.items()).encode()


def _setup(line: str) -> dict[str, bytes | Path]:
    return {"setup": f"{line}\n".encode()} if line.strip() else {}
