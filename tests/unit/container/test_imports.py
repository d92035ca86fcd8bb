"""What the end of an import means; last words are a real Enroot's where tests/lab/recorded has them."""

from __future__ import annotations

import pytest

from towline.container.imports import failure_of
from towline.models.image import Image
from towline.slurm.preparation import Preparation, parse_preparations

IMAGE = Image.parse("registry.lab:5001/demo:latest")
ASKING = "[INFO] Querying registry for permission grant"


def ended(*log: str, stage: str = "import", **end: str) -> Preparation:
    return Preparation(number=1, slurm_id="41", state="ended", end={"code": "1", "stage": stage, **end}, log=log)


@pytest.mark.parametrize(
    ("found", "kind", "why", "fix"),
    [
        (
            ended(ASKING, "[INFO] Authenticating with user: <anonymous>"),
            "credentials",
            "registry.lab:5001 does not give it: [INFO] Authenticating with user: <anonymous>",
            "towline registry login registry.lab:5001 --user NAME",
        ),
        (
            ended(
                ASKING, "[INFO] Authenticating with user: puller", "[INFO] Using credentials from file: /h/.credentials"
            ),
            "credentials",
            "Using credentials from file: /h/.credentials",
            "towline registry login",
        ),
        (
            ended(ASKING, "[ERROR] URL http://r/v2/demo/manifests/no returned error code: 404 Not Found"),
            "not-found",
            "[ERROR] URL http://r/v2/demo/manifests/no returned error code: 404 Not Found",
            "towline registry check registry.lab:5001/demo:latest",
        ),
        (
            ended(ASKING, "curl: (7) Failed to connect to r port 5999 after 0 ms: Couldn't connect to server"),
            "registry",
            "curl: (7) Failed to connect",
            "try again",
        ),
        (
            ended(ASKING, "curl: (6) Could not resolve host: nosuch.invalid"),
            "registry",
            "Could not resolve",
            "try again",
        ),
        (ended(ASKING, "[ERROR] URL http://r/x returned error code: 503 Service"), "registry", "503", "try again"),
        (
            ended(
                "[INFO] Creating…",
                "Write failed because No space left on device",
                made="3221225472",
                cache="2097152 /c",
                scratch="1048576 /s",
            ),
            "space",
            "on device; it had come to 3.0 GiB, /c has 2.0 GiB free, /s has 1.0 GiB free",
            "image_cache",
        ),
        (ended("mv: Disk quota exceeded", stage="keep"), "space", "Disk quota exceeded", "Make room"),
        (
            ended(
                "Write failed because Disk quota exceeded",
                limits="disk 9 9 9 a b /c~lfs user me /c 2000 0 2000 - 12 0 0 -~",
            ),
            "space",
            "Disk quota exceeded; the quota of user me on /c: 2.0 MiB of 2.0 MiB used",
            "Make room",
        ),
        (
            ended("[ERROR] Could not create destination file: Permission denied", cache="2097152 /c"),
            "other",
            "Permission denied: /c",
            "Make it writable",
        ),
        (ended(stage="check"), "not-squashfs", "not a whole squashfs", "again"),
        (ended(stage="no-enroot", host="cpu1"), "no-enroot", "no enroot on cpu1", "import_partition"),
        (ended("[INFO] Extracting image layers...", stage="stopped"), "stopped", "Extracting image layers", "again"),
        (ended("sh: 9: cannot create /c/.x: Directory nonexistent", stage="keep"), "other", "/c/.x", "that directory"),
        (Preparation(number=1, slurm_id="41", state="gone"), "stopped", "its job 41", "again"),
        (ended("tar: odd", "something else"), "other", "something else", "registry check"),
        (ended(), "other", "exit code 1", "registry check"),
    ],
)
def test_each_end_has_its_own_words(found: Preparation, kind: str, why: str, fix: str) -> None:
    failure = failure_of(IMAGE, found)
    assert failure
    assert failure.kind == kind
    assert why in failure.why
    assert fix in failure.fix


@pytest.mark.parametrize(
    "found",
    [
        Preparation(),
        Preparation(ready=True, state="gone", number=1),
        Preparation(state="alive", number=1),
        Preparation(state="unknown", number=1),
        Preparation(state="ended", number=1, end={"code": "0", "stage": "done"}),
    ],
)
def test_what_did_not_fail(found: Preparation) -> None:
    assert failure_of(IMAGE, found) is None


def test_nvidias_registry_needs_no_user() -> None:
    failure = failure_of(Image.parse("nvcr.io/nvidia/x"), ended(ASKING, "[INFO] Authenticating with user: $oauthtoken"))
    assert failure
    assert failure.fix == "towline registry login nvcr.io"


def test_an_answer() -> None:
    answer = (
        "@fact made-a+1\n@fact making-a+1\n>number 2\n>slurm 41\n>state alive\n>stage import\n>progress 2048\n"
        ">log [INFO] Downloading 5 missing layers...\n>log  10%\n@fact of-a+1\n>reference r/a:1\n"
        "@fact made-b+1\n>size 77\n@end\n"
    )
    found = parse_preparations(answer)
    assert found["b+1"] == Preparation(ready=True, size=77)
    one = found["a+1"]
    assert (one.number, one.slurm_id, one.state, one.bytes, one.reference) == (2, "41", "alive", 2048, "r/a:1")
    assert one.doing == "Downloading 5 missing layers..."
    assert one.running
    assert one.next_number == 2
    with pytest.raises(ValueError, match="broke off"):
        parse_preparations(answer.removesuffix("@end\n"))


@pytest.mark.parametrize(
    ("state", "number"), [("open", 3), ("alive", 3), ("unknown", 3), ("gone", 4), ("ended", 4), ("none", 4)]
)
def test_a_new_attempt_is_made_only_when_none_is_under_way(state: str, number: int) -> None:
    answer = f"@fact made-a\n@fact making-a\n>number 3\n>slurm -\n>state {state}\n@end\n"
    assert parse_preparations(answer)["a"].next_number == number
