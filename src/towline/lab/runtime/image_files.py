"""The lab's container images: `.sqsh` files on the shared disk, and the same in both registries."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from towline.lab import process
from towline.lab.errors import LabError
from towline.lab.layout import Layout
from towline.lab.runtime import docker_archive, registry
from towline.lab.runtime.permissions import readable_by_all

Report = Callable[[str], None]

_PYTHON_PACKAGES = "python3-minimal libpython3-stdlib bash dash coreutils sed grep findutils hostname"
_MERGED = ("bin", "sbin", "lib", "lib64")
_UNWANTED = ("./usr/share/doc/*", "./usr/share/man/*", "./usr/share/locale/*", "./usr/share/info/*")
_COMMAND_SCRIPT = """\
mkdir -p "/" 2> /dev/null
cd "/" && unset OLDPWD || exit 1

if [ -s /etc/rc.local ]; then
    . /etc/rc.local
fi

if [ $# -gt 0 ]; then
    exec "$@"
else
    exec '/bin/sh'
fi
"""
_FOLDERS = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "usr", "var/tmp")


@dataclass(frozen=True)
class LabImage:
    """One image and where it comes from."""

    file: str
    """Name of the `.sqsh` file in /lustre/images."""
    repository: str
    tag: str
    os_name: str
    """NAME in its /etc/os-release, by which a job can tell where it runs."""
    os_id: str
    fill: Callable[[Path, Path], None]
    """Puts the programs into an empty root (first argument), with a folder to work in (second)."""

    @property
    def environment(self) -> dict[str, str]:
        """The image's ENV."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LAB_IMAGE": self.os_id}


def images(layout: Layout, report: Report) -> None:
    """Make the images that are missing or whose recipe changed, and put them where the cluster finds them.

    Raises:
        LabError: a package could not be fetched, or a registry does not take an image.
    """
    with readable_by_all():
        layout.images.mkdir(parents=True, exist_ok=True)
        for image in IMAGES:
            if _problem(layout, image):
                _provide(layout, image, report)


def check_images(layout: Layout) -> str:
    """What is missing; empty when each image is on the shared disk and in the registries."""
    return "; ".join(problem for image in IMAGES if (problem := _problem(layout, image)))


def _problem(layout: Layout, image: LabImage) -> str:
    version = _version(image)
    if not (layout.images / image.file).exists() or _marked(layout.images / f".{image.file}") != version:
        return f"{image.file} is missing or old"
    for one in registry.REGISTRIES:
        if not one.holds(layout, image.repository, image.tag) or _marked(_pushed(layout, one, image)) != version:
            return f"{image.repository}:{image.tag} is not in the {one.name} registry"
    return ""


def _provide(layout: Layout, image: LabImage, report: Report) -> None:
    version = _version(image)
    made = layout.root / "cache" / f"{image.os_id}-{version}"
    if not made.is_dir():
        report(f"making the image {image.file}")
        _make(image, made)
    fresh = layout.images / f".{image.file}.new"
    shutil.copyfile(made / "image.sqsh", fresh)
    fresh.chmod(0o644)
    fresh.replace(layout.images / image.file)
    (layout.images / f".{image.file}").write_text(version)
    for one in registry.REGISTRIES:
        registry.push(layout, one, made / "image.tar", image.repository, image.tag)
        _pushed(layout, one, image).write_text(version)


def _make(image: LabImage, made: Path) -> None:
    made.parent.mkdir(parents=True, exist_ok=True)
    for stale in made.parent.glob(f"{image.os_id}-*"):
        shutil.rmtree(stale)
    with tempfile.TemporaryDirectory(dir=made.parent, prefix=".making-") as work:
        root, out = Path(work, "root"), Path(work, "out")
        out.mkdir()
        for folder in _FOLDERS:
            (root / folder).mkdir(parents=True)
        image.fill(root, Path(work))
        (root / "etc" / "os-release").unlink(missing_ok=True)
        (root / "etc" / "os-release").write_text(f'NAME="{image.os_name}"\nID={image.os_id}\nVERSION_ID=1\n')
        docker_archive.write(root, out / "image.tar", f"{image.repository}:{image.tag}", image.environment, Path(work))
        _squash(root, image.environment, out / "image.sqsh")
        out.rename(made)


def _squash(root: Path, environment: dict[str, str], target: Path) -> None:
    """As `enroot import` would: the image's ENV becomes /etc/environment, the rest of its configuration /etc/rc."""
    (root / "etc" / "environment").write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
    (root / "etc" / "rc").write_text(_COMMAND_SCRIPT)
    options = "-all-root -noappend -no-progress -quiet -comp zstd -Xcompression-level 1"
    process.run(["mksquashfs", str(root), str(target), *options.split()])


def _fill_busybox(root: Path, _work: Path) -> None:
    busybox = _busybox()
    (root / "bin").mkdir()
    shutil.copyfile(busybox, root / "bin" / "busybox")
    (root / "bin" / "busybox").chmod(0o755)
    for applet in process.run([str(busybox), "--list"]).stdout.split():
        if applet != "busybox":
            (root / "bin" / applet).symlink_to("busybox")


def _busybox() -> Path:
    found = shutil.which("busybox", path=process.PATH)
    if found is None:
        raise LabError("busybox is not installed.", fix="Run `towline lab up --install`.")
    return Path(found)


def _fill_python(root: Path, work: Path) -> None:
    for name in _MERGED:
        (root / "usr" / name).mkdir()
        (root / name).symlink_to(f"usr/{name}")
    for package in _download(_PYTHON_PACKAGES.split(), work / "apt"):
        _unpack(package, root)
    for name, target in (("sh", "dash"), ("awk", "mawk")):
        if not (root / "usr" / "bin" / name).is_symlink():
            (root / "usr" / "bin" / name).symlink_to(target)
    # The image is read-only: what is not compiled now is compiled at every start.
    compile_all = "python3 -m compileall -q --invalidation-mode unchecked-hash"
    standard_library = [f"/usr/lib/{path.name}" for path in (root / "usr" / "lib").glob("python3*")]
    process.run(["chroot", str(root), *compile_all.split(), *standard_library])


def _download(packages: Sequence[str], folder: Path) -> list[Path]:
    """Fetch packages with all they depend on, as into an empty system, by the machine's own apt."""
    (folder / "archives" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    options = [f"Dir::State::status={folder}/status", f"Dir::Cache::archives={folder}/archives"]
    options += ["APT::Sandbox::User=root", "APT::Install-Recommends=false", "Debug::NoLocking=true"]
    flags = [part for option in options for part in ("-o", option)]
    try:
        process.run(["apt-get", "-y", "-q", *flags, "--download-only", "install", *packages], timeout=600)
    except LabError as error:
        raise LabError(
            "The packages of the python image could not be fetched.", why=error.why, fix="Try `apt-get update`."
        ) from error
    return sorted((folder / "archives").glob("*.deb"))


def _unpack(package: Path, root: Path) -> None:
    excluded = [f"--exclude={pattern}" for pattern in _UNWANTED]
    into = ["tar", "-x", "-C", str(root), "--keep-directory-symlink", *excluded]
    process.run(["sh", "-c", 'package=$1; shift; dpkg-deb --fsys-tarfile "$package" | "$@"', "sh", str(package), *into])


def _version(image: LabImage) -> str:
    """Changes with the recipe: this code, the image's description, the busybox it is made of."""
    digest = hashlib.sha256(Path(__file__).read_bytes() + Path(docker_archive.__file__).read_bytes())
    digest.update(repr((image.file, image.repository, image.tag, image.os_name, image.environment)).encode())
    if image.fill is _fill_busybox:
        digest.update(_busybox().read_bytes())
    return digest.hexdigest()[:16]


def _pushed(layout: Layout, one: registry.Registry, image: LabImage) -> Path:
    return one.storage(layout) / f"pushed-{image.repository}-{image.tag}"


def _marked(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


IMAGES = (
    LabImage("busybox.sqsh", "demo", "latest", "LabBusybox", "lab", _fill_busybox),
    LabImage("python.sqsh", "python", "3.11", "LabPython", "lab-python", _fill_python),
)
