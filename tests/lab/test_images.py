"""Images of registries become files by a job of their own, before any GPU is allocated."""

from __future__ import annotations

import re
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.faulty import as_alice, fault
from tests.lab.terminal import COMMAND, Terminal
from towline.lab import Lab

OPEN, LOCKED = "registry.lab:5000", "registry.lab:5001"
CREDENTIALS = "/home/alice/.config/enroot/.credentials"
GPU = ("--gpus-per-node", "1", "--time", "2m")


@dataclass
class Site:
    """The lab with a cache of its own, and the jobs that Slurm has seen since."""

    lab: Lab
    towline: Terminal
    cache: str
    first: int

    def jobs(self) -> list[tuple[str, str, int, int]]:
        """Partition, state's first word, start and end of each job since the test began; 0 for never."""
        fields = "JobIDRaw,Partition,State,Start,End"
        shown = as_alice(self.lab, f"SLURM_TIME_FORMAT=%s sacct -X -n -P -S now-1hours --format={fields}")
        rows = [line.split("|") for line in shown.splitlines()]
        return [
            (row[1], row[2].split()[0], _number(row[3]), _number(row[4])) for row in rows if int(row[0]) >= self.first
        ]

    def allocated(self, partition: str) -> list[tuple[int, int]]:
        """Start and end of the jobs that ever had nodes there."""
        return [(start, end) for part, _, start, end in self.jobs() if part == partition and start]

    def files(self) -> list[str]:
        """What lies in the cache, parts too."""
        return as_alice(self.lab, f"ls -A {self.cache} 2>/dev/null || true").split()


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


@pytest.fixture
def site(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    cache = f"/lustre/alice/labtest-images-{secrets.token_hex(4)}"
    as_alice(lab, f"rm -f {CREDENTIALS}")
    towline = Terminal(tmp_path / "state", {"TOWLINE_IMAGE_CACHE": cache})
    yield Site(lab, towline, cache, int(as_alice(lab, "scontrol show config | sed -n 's/^NEXT_JOB_ID *= *//p'")))
    as_alice(lab, f"rm -rf {cache} {CREDENTIALS}")


def test_the_allocation_begins_when_the_image_is_there(site: Site, lab: Lab) -> None:
    """Who follows the job sees how far its image is; the registry is slow enough for that."""
    run = ("run", "--json", "--image", f"{OPEN}/demo:latest", *GPU, "--", "sh", "-c", "cat /etc/os-release")
    with fault(lab, "registry-slow", "512"):
        first = site.towline(*run)
    assert first.code == 0, first
    assert "ID=lab" in "".join(event.get("text", "") for event in first.lines)
    notes = [event["job"]["note"] for event in first.lines if event["event"] == "state"]
    assert any(f"{OPEN}/demo:latest is being imported: " in note for note in notes), notes
    (imported,), (began, _) = site.allocated("cpu"), site.allocated("batch")[0]
    assert imported[1] <= began
    names = site.files()
    assert [name for name in names if name.endswith(".sqsh")] == [
        name.replace(".note", ".sqsh") for name in names if name.endswith(".note")
    ]
    second = site.towline(*run)
    assert second.code == 0, second
    assert len(site.allocated("cpu")) == 1, "it is imported once"


def test_a_plan_tells_the_file_and_makes_nothing(site: Site) -> None:
    plan = site.towline("plan", "--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
    assert plan.code == 0, plan
    assert f"a job on cpu makes {site.cache}/registry.lab+5000+demo+latest+" in plan.out
    assert site.files() == []
    assert site.jobs() == []


def test_what_a_registry_refuses_is_told_before_anything_is_submitted(site: Site, lab: Lab) -> None:
    no_key = site.towline("run", "--image", f"{LOCKED}/demo:latest", *GPU, "--", "true")
    assert no_key.code == 65
    assert f"fix: towline registry login {LOCKED} --user NAME" in no_key.err
    login = [*COMMAND, "registry", "login", LOCKED, "--user", "puller"]
    subprocess.run(
        [*login, "--untried"],
        input="wrong",
        env=site.towline.env(),
        text=True,
        check=True,
        capture_output=True,
        timeout=60,
    )
    wrong = site.towline("run", "--image", f"{LOCKED}/demo:latest", *GPU, "--", "true")
    assert wrong.code == 65
    assert "machine registry.lab login puller" in wrong.err
    unknown = site.towline("run", "--image", f"{OPEN}/demo:nosuch", *GPU, "--", "true")
    assert unknown.code == 65
    assert "manifests/nosuch was answered with 404. Its tags are latest." in unknown.err
    with fault(lab, "registry-down"):
        down = site.towline("images", "pull", f"{OPEN}/demo:latest")
    assert down.code == 73
    assert "Failed to connect to registry.lab port 5000" in down.err
    assert site.allocated("batch") == []
    password = (lab.paths.root / "keys" / "registry-password").read_text()
    subprocess.run(
        login, input=password, env=site.towline.env(), text=True, check=True, capture_output=True, timeout=60
    )
    right = site.towline("run", "--image", f"{LOCKED}/demo:latest", *GPU, "--", "true")
    assert right.code == 0, right


def test_an_import_that_fails_takes_the_waiting_job_with_it_and_tells_enroots_words(site: Site) -> None:
    """Without a client, too: the jobs are submitted one after another, and only then somebody looks."""
    site.towline.environment["TOWLINE_IMAGE_TAGS"] = "reuse"
    asked = {
        f"{LOCKED}/demo:latest": f"<anonymous>; {CREDENTIALS} has no line for registry.lab.",
        f"{OPEN}/demo:nosuch": "returned error code: 404 Not Found; ",
        "registry.lab:5999/demo:latest": "curl: (7) Failed to connect to registry.lab port 5999",
    }
    jobs = {image: site.towline.submit("--image", image, *GPU, "--", "true") for image in asked}
    for image, words in asked.items():
        ended = site.towline.until(jobs[image], lambda job: job["state"] not in ("pending", "submitting"))
        assert ended["state"] == "cancelled"
        assert f"its image {image} could not be imported" in ended["note"]
        assert words in ended["note"]
    assert site.allocated("batch") == []
    assert [name for name in site.files() if name != "imports"] == []


def test_an_import_that_was_killed_does_not_stand_in_the_way_of_the_next(site: Site, lab: Lab) -> None:
    blocker = as_alice(lab, "sbatch --parsable -p cpu --exclusive -t 2 -o /dev/null --wrap 'sleep 300'")
    job = site.towline.submit("--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
    as_alice(lab, f"touch -d '3 days ago' {site.cache}/imports/*/attempts/1")
    unused = site.towline("gc", "--older-than", "1d", "--only", "imports", "--json").json["removable"]
    assert not [each for each in unused if each["path"].startswith(site.cache)], "the import waits in the queue"
    as_alice(lab, f"squeue -h -p cpu -t PD -o %i --me | xargs scancel; scancel {blocker}")
    ended = site.towline.until(job, lambda job: job["state"] not in ("pending", "submitting"))
    assert ended["state"] == "cancelled"
    assert "was ended before it was done" in ended["note"]
    again = site.towline("run", "--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
    assert again.code == 0, again


def test_many_at_once_cause_one_import(site: Site) -> None:
    words = ("run", "--detach", "--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
    clients = [site.towline.start(*words) for _ in range(4)]
    assert [client.wait(120) for client in clients] == [0] * 4, [client.communicate() for client in clients]
    for client in clients:
        out, _ = client.communicate()
        waited = site.towline("wait", out.strip())
        assert waited.code == 0, waited.out
    assert len(site.allocated("cpu")) == 1


def test_the_job_of_another_cache_is_not_taken_for_the_one_that_was_begun(site: Site, lab: Lab) -> None:
    """Whoever began died before it could write down what Slurm said; the same image was imported elsewhere today."""
    image = ("--image", f"{OPEN}/demo:latest")
    pulled = site.towline("images", "pull", image[1], "--json")
    assert pulled.code == 0, pulled
    (name,) = (each.removesuffix(".sqsh") for each in site.files() if each.endswith(".sqsh"))
    other = f"{site.cache}/other"
    begun = f"{other}/imports/{name}/attempts/1"
    as_alice(lab, f"umask 077; mkdir -p {begun}; touch -d '1 hour ago' {begun}")
    site.towline.environment["TOWLINE_IMAGE_CACHE"] = other
    ran = site.towline("run", *image, *GPU, "--", "true")
    assert ran.code == 0, ran.out
    assert len(site.allocated("cpu")) == 2
    as_alice(lab, f"touch -d '3 days ago' {begun}")
    unused = site.towline("gc", "--older-than", "1d", "--only", "imports", "--json").json["removable"]
    assert f"{other}/imports/{name}" in [each["path"] for each in unused]


def test_a_full_disk_is_told_and_nothing_is_submitted(site: Site, lab: Lab) -> None:
    with fault(lab, "disk-full"):
        full = site.towline("run", "--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
    assert full.code == 65, full
    assert re.search(r"image: no file can be made of \S+/demo:latest: .* free", full.err)
    assert site.jobs() == []


def test_a_disk_that_an_image_fills_is_told_with_how_much_was_free(site: Site, lab: Lab) -> None:
    """There is room for the import's own records, and not for the image: Enroot's mksquashfs meets the end of it.

    The registry is asked how large an image is, of a digest as well, but for a tag whose file would be reused.
    """
    digest = site.towline("registry", "check", "--json", f"{OPEN}/demo:latest").json["manifest"]["digest"]
    ballast = f"{site.cache}-ballast"
    fill = f"free=$(df --output=avail -B1 /lustre | tail -n 1); fallocate -l $((free - 1000000)) {ballast}"
    try:
        as_alice(lab, fill)
        told = [site.towline("images", "pull", f"{OPEN}/demo{each}") for each in (":latest", f"@{digest}")]
        site.towline.environment["TOWLINE_IMAGE_TAGS"] = "reuse"
        job = site.towline.submit("--image", f"{OPEN}/demo:latest", *GPU, "--", "true")
        full = site.towline.until(job, lambda each: each["state"] not in ("pending", "submitting"))
    finally:
        as_alice(lab, f"rm -f {ballast}")
    assert [(each.code, "no file can be made" in each.err) for each in told] == [(65, True)] * 2, told
    assert full["state"] == "cancelled"
    assert re.search(rf"[Nn]o space left on device; .*{site.cache} has [0-9.]+ KiB free", full["note"]), full
    assert [name for name in site.files() if name != "imports"] == []
    assert site.allocated("batch") == []


def test_the_cache_is_listed_verified_and_pruned_but_for_what_is_in_use(site: Site, lab: Lab) -> None:
    towline, image = site.towline, f"{OPEN}/demo:latest"
    pulled = towline("images", "pull", image)
    assert pulled.code == 0, pulled
    assert pulled.out.startswith(f"{site.cache}/registry.lab+5000+demo+latest+")
    # Held: it has the image without having started.
    job = towline.submit("--image", image, "--sbatch", "hold", *GPU, "--", "true")
    (listed,) = towline("images", "ls", "--json").json["images"]
    assert (listed["image"], listed["jobs"], listed["arch"]) == (image, [job], "x86_64")
    assert towline("images", "rm", listed["name"]).code == 71
    assert towline("images", "prune", "--unused", "0", "--json").json["removed"] == []
    assert towline("images", "verify").code == 0
    as_alice(lab, f"printf x | dd of={site.cache}/{listed['name']}.sqsh bs=1 seek=200 conv=notrunc 2>/dev/null")
    changed = towline("images", "verify")
    assert (changed.code, changed.out.split()[0]) == (71, "changed")
    assert towline("cancel", job).code == 0
    removed = towline("images", "prune", "--unused", "0", "--json").json["removed"]
    assert [each["outcome"] for each in removed] == ["removed"]
    assert site.files() == ["imports"]


def test_a_tag_that_moved_is_another_file(site: Site, lab: Lab) -> None:
    """The file that is there was made of another digest."""
    image = f"{OPEN}/demo:latest"
    first = site.towline("images", "pull", image).out.strip()
    moved = f"{first.rpartition('+')[0]}+000000000000.sqsh"
    note = first.replace(".sqsh", ".note")
    as_alice(lab, f"mv {first} {moved}; mv {note} {moved.replace('.sqsh', '.note')}")
    plan = site.towline("plan", "--image", image, *GPU, "--", "true")
    assert f"makes {first} of {image}" in plan.out
    site.towline.environment["TOWLINE_IMAGE_TAGS"] = "reuse"
    reused = site.towline("plan", "--image", image, *GPU, "--", "true")
    assert f"on the cluster: {moved}" in reused.out
    as_alice(lab, f"touch -d '40 days ago' {moved}")
    old = site.towline("plan", "--image", image, *GPU, "--", "true")
    assert f"the file of {image} is 40 days old, and its registry was not asked" in old.out + old.err
