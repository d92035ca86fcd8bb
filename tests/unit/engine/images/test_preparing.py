"""Which file an image becomes, and what is said when its registry does not give it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from towline.config.profile import ClusterProfile
from towline.container.cache import CachedImage, Found, name_of
from towline.container.registry import Manifest
from towline.engine.images.preparing import decide, jobs_with, nodes_of
from towline.models.image import Image
from towline.models.plan import Verdict
from towline.models.resources import Resources
from towline.models.roles import Role
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.space import Quota, Space

TEXT = "nvcr.io/nvidia/x:1"
DIGEST, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me")
DAY = 86400


def there(digest: str = DIGEST, modified: int = 0) -> CachedImage:
    name = name_of(Image.parse(TEXT), "x86_64", digest)
    return CachedImage(name, 1000, 10, modified, {"size": "10", "digest": digest})


def answered(code: int, digest: str = "") -> Manifest:
    return Manifest(url="https://nvcr.io/v2", first=code, code=code, file="/h/.credentials", digest=digest)


def found(*images: CachedImage, manifest: Manifest | None = None, arches: tuple[str, ...] = ("x86_64",)) -> Found:
    return Found(1000, arches, images, manifest)


@pytest.mark.parametrize(
    ("answer", "verdict", "ready", "said"),
    [
        (found(there(), manifest=answered(200, DIGEST)), Verdict.ON_SUBMIT, True, "is in the cache"),
        (found(there(OTHER), manifest=answered(200, DIGEST)), Verdict.OK, False, "a job on cpu makes"),
        (found(manifest=answered(200, DIGEST)), Verdict.OK, False, "a job on cpu makes /lustre/me/images/"),
        (found(there(), manifest=answered(404)), Verdict.ON_SUBMIT, True, "is in the cache"),
        (found(manifest=answered(404)), Verdict.FAILS, None, "has no image"),
        (found(manifest=answered(401)), Verdict.FAILS, None, "has no line for nvcr.io"),
        (found(manifest=answered(0)), Verdict.CANNOT_TELL, False, "could not be reached"),
        (found(there()), Verdict.ON_SUBMIT, True, "is in the cache"),
        (found(), Verdict.OK, False, "a job on cpu makes"),
        (found(arches=("aarch64", "x86_64")), Verdict.FAILS, None, "are aarch64 and x86_64"),
    ],
)
def test_what_becomes_of_an_image(answer: Found, verdict: Verdict, ready: bool | None, said: str) -> None:
    planned, check, _ = decide(TEXT, answer, PROFILE, 0.0)
    assert check.verdict is verdict
    assert said in check.evidence
    assert (planned.ready if planned else None) is ready


def test_a_file_that_was_not_compared_with_its_registry_is_told() -> None:
    _, _, note = decide(TEXT, found(there(), manifest=answered(0)), PROFILE, 0.0)
    assert "was not compared with its registry" in note
    _, _, old = decide(TEXT, found(there()), PROFILE, 40.0 * DAY)
    assert "is 40 days old" in old
    assert decide(TEXT, found(there()), PROFILE, 2.0 * DAY)[2] == ""


SHARED = PROFILE.model_copy(update={"image_owners": ("ada",), "image_cache": "/lustre/group/images"})


def test_a_file_of_another_user_counts_where_the_profile_names_its_owner() -> None:
    notes = {"size": "10", "digest": DIGEST, "image": TEXT}
    hers = CachedImage(name_of(Image.parse(TEXT), "x86_64", DIGEST), 1001, 10, 0, notes, "-rw-r--r--", "ada")
    planned, check, _ = decide(TEXT, found(hers, manifest=answered(200, DIGEST)), SHARED, 0.0)
    assert planned
    assert (planned.ready, planned.owner) == (True, "ada")
    assert f"is in the cache, made by ada: /lustre/group/images/{hers.name}.sqsh" in check.evidence
    alone, _, _ = decide(TEXT, found(hers, manifest=answered(200, DIGEST)), PROFILE, 0.0)
    assert alone
    assert not alone.ready


def test_the_records_of_imports_into_a_shared_cache_are_the_users_own() -> None:
    """A job starts the script that lies there."""
    planned, _, _ = decide(TEXT, found(manifest=answered(200, DIGEST)), SHARED, 0.0)
    assert planned
    assert planned.place.startswith("/lustre/me/images/for-")
    other = SHARED.model_copy(update={"image_cache": "/lustre/other/images"})
    elsewhere, _, _ = decide(TEXT, found(manifest=answered(200, DIGEST)), other, 0.0)
    assert elsewhere
    assert elsewhere.place != planned.place


def test_it_is_told_when_the_login_host_makes_an_image() -> None:
    profile = PROFILE.model_copy(update={"import_on": "login"})
    _, check, _ = decide(TEXT, found(manifest=answered(200, DIGEST)), profile, 0.0)
    assert check.evidence.startswith("the login host makes /lustre/me/images/")


@pytest.mark.parametrize(
    ("free_mib", "squash", "fits"),
    [(100, "", True), (99, "", False), (50, "-comp zstd", True), (99, "-comp lzo -noD", False)],
)
def test_an_image_that_cannot_fit_is_refused_before_anything_is_written(free_mib: int, squash: str, fits: bool) -> None:
    quota = Quota("project 7", "/lustre", False, 10, 10 + free_mib * 1024)
    manifest = replace(answered(200, DIGEST), sizes={"x86_64": 50 << 20, "aarch64": 1})
    answer = replace(found(manifest=manifest), space=Space("/lustre/me", 1 << 30, quotas=(quota,)), squash=squash)
    planned, check, _ = decide(TEXT, answer, PROFILE, 0.0)
    assert (planned is not None) is fits
    assert (check.verdict is Verdict.FAILS) is not fits
    if not fits:
        assert "the quota of project 7 on /lustre: 10 KiB of" in check.evidence
    assert decide(TEXT, replace(answer, images=(there(),)), PROFILE, 0.0)[1].verdict is Verdict.ON_SUBMIT


@pytest.mark.parametrize(
    ("given", "features"), [("h100", ("h100",)), ("a&b-2", ("a", "b-2")), ("a|b", ()), ("[a&b]*2", ())]
)
def test_the_nodes_that_a_job_may_get_are_told(given: str, features: tuple[str, ...]) -> None:
    facts = SiteFacts(cluster="c", version="22.05", partitions=())
    spec = JobSpec(
        command=("true",),
        constraint=given,
        nodelist="n[1-2]",
        exclude="n3",
        resources=Resources(gpus=1, gpu_type="a100"),
    )
    nodes = nodes_of(spec, facts)
    assert tuple(nodes.features) == features
    assert nodes.file.decode().splitlines()[:3] == ["in n[1-2]", "out n3", "gpu a100"]


def test_an_image_is_for_the_nodes_of_the_components_that_start_it() -> None:
    roles = (
        Role(name="actor", command=("true",), partition=("grace",), image="nvcr.io/x/actor:1"),
        Role(name="helper", command=("true",), on="actor", image="nvcr.io/x/helper:1"),
        Role(name="learner", command=("true",), partition=("hopper",), constraint="fast"),
        Role(name="judge", command=("true",), partition=("hopper",)),
    )
    spec = JobSpec(image=TEXT, partition=("cpu",), roles=roles)
    assert [
        [(each.partition, each.constraint) for each in jobs_with(spec, text)]
        for text in ("nvcr.io/x/actor:1", "nvcr.io/x/helper:1", TEXT)
    ] == [[(("grace",), None)], [(("grace",), None)], [(("hopper",), "fast"), (("hopper",), None)]]
    plain = JobSpec(image=TEXT, command=("true",))
    assert jobs_with(plain, TEXT) == (plain,)
