"""Data from elsewhere is on the shared file system before any GPU is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.data_site import GPU, KEYS, Site, own_site
from tests.lab.faulty import as_alice, fault
from towline.lab import Lab
from towline.lab.layout import WEB_PORT, WEB_TLS_PORT
from towline.lab.process import until
from towline.lab.store.daemon import web_folder


@pytest.fixture
def site(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    with own_site(lab, tmp_path) as own:
        yield own


def test_an_allocation_of_two_nodes_begins_when_image_and_data_are_there(site: Site) -> None:
    for number in range(3):
        site.store.put(f"set/part {number}.txt", b"%d\n" % number * 1000)
    source = f"/data=s3://{site.store.bucket}/set"
    run = ("run", *KEYS, "--image", "registry.lab:5000/demo:latest", "--nodes", "2", *GPU, "--input", source)
    first = site.towline(*run, "--", "sh", "-c", "echo $(cat /data/* | wc -l) $(ls /etc/os-release)")
    assert first.code == 0, first
    assert first.out.splitlines() == ["3000 /etc/os-release"] * 2
    prepared, (allocated,) = site.on("cpu"), site.on("batch")
    assert len(prepared) == 2
    assert all(end <= allocated[0] for _, end in prepared), (prepared, allocated)
    # Again: nothing is brought twice. Changed at its source: another copy.
    assert site.towline(*run, "--", "true").code == 0
    assert len(site.on("cpu")) == 2
    site.store.put("set/part 0.txt", b"new\n")
    changed = site.towline(*run, "--", "sh", "-c", "head -n 1 '/data/part 0.txt'")
    assert changed.out.split() == ["new"] * 2, changed
    assert len(as_alice(site.lab, f"ls {site.place}/data | grep set").split()) == 2
    for word in (site.store.secret, site.store.access):
        found = as_alice(site.lab, f"grep -rlF {word} {site.place} /lustre/alice/towline/jobs || true")
        assert found == "", f"a key lies in {found}"


def test_what_a_source_refuses_is_told_before_anything_is_submitted(site: Site) -> None:
    uri = site.store.put("set/a", b"a")
    rest = (*GPU, "--", "true")
    missing = site.towline("run", *KEYS, "--input", f"/a=s3://{site.store.bucket}/nothing", *rest)
    assert missing.code == 65
    assert "there is no such object" in missing.err
    no_keys = site.towline("run", "--input", f"/a={uri}", *rest)
    assert no_keys.code == 65
    assert "--secret ACCESS_KEY" in no_keys.err
    site.towline.environment["SECRET_KEY"] = "wrong-wrong-wrong"  # noqa: S105
    wrong = site.towline("run", *KEYS, "--input", f"/a={uri}", *rest)
    assert wrong.code == 65
    assert "SignatureDoesNotMatch" in wrong.err
    assert site.jobs() == []


def test_many_wait_for_one_copy_and_are_told_why_it_cannot_be_made(site: Site) -> None:
    """Without a client, too: all jobs are submitted, and only then somebody looks."""
    uri = site.store.put("one.bin", b"x" * 100)
    blocker = as_alice(site.lab, "sbatch --parsable -p cpu --exclusive -t 2 -o /dev/null --wrap 'sleep 300'")
    words = ("run", "--detach", *KEYS, "--input", f"/one.bin={uri}", *GPU, "--", "true")
    clients = [site.towline.start(*words) for _ in range(3)]
    jobs = [client.communicate(timeout=120)[0].strip() for client in clients]
    assert as_alice(site.lab, "squeue -h -p cpu -t PD -o %j | grep -c towline-stage") == "1"
    site.store.put("one.bin", b"y" * 100)
    as_alice(site.lab, f"scancel {blocker}")
    for job in jobs:
        ended = site.towline.until(job, lambda job: job["state"] not in ("pending", "submitting"))
        assert ended["state"] == "cancelled"
        assert f"its input {uri} could not be staged: {uri} was changed since the job was submitted" in ended["note"]
    assert site.on("batch") == []
    again = site.towline("run", *KEYS, "--input", f"/one.bin={uri}", *GPU, "--", "cat", "/one.bin")
    assert (again.code, again.out) == (0, "y" * 100), again


def test_results_go_away_once_the_job_has_succeeded(site: Site) -> None:
    kept = f"{site.place}/kept"
    outputs = ("--output", f"model=s3://{site.store.bucket}/models/7", "--output", f"log.txt={kept}/log.txt")
    command = (
        'cd "$TOWLINE_RESULTS_DIR" && mkdir -p model/a && echo weights >model/a/w && echo said >log.txt; exit $CODE'
    )
    run = ("run", "--detach", *KEYS, *GPU, *outputs)
    good, bad = (
        site.towline(*run, "--env", f"CODE={code}", "--", "sh", "-c", command).out.strip() for code in ("0", "3")
    )
    assert site.towline("wait", good).code == 0
    assert site.towline("wait", bad).code == 3
    words: dict[str, str] = {}

    def told() -> bool:
        for job in (good, bad):
            (found,) = site.towline("results", "--json", job).json["results"]
            words[job] = found["outputs"]
        return not any(" taken to" in word and "were" not in word for word in words.values())

    until(told, 60, "both deliveries")
    assert "were taken to" in words[good], words
    assert "were not taken to" in words[bad], words
    assert "did not succeed" in words[bad], words
    assert site.store.get("models/7/a/w") == b"weights\n"
    assert as_alice(site.lab, f"cat {kept}/log.txt") == "said"
    here = site.towline("run", "--output", "model=./here", *GPU, "--", "true")
    assert here.code == 65
    assert "towline results JOB --pull" in here.err


def test_each_task_of_an_array_has_its_own_place_for_results(site: Site) -> None:
    kept = f"{site.place}/kept"
    outputs = ("--output", f"model=s3://{site.store.bucket}/sweep", "--output", f"log.txt={kept}")
    command = (
        'cd "$TOWLINE_RESULTS_DIR" && mkdir model && echo $SLURM_ARRAY_TASK_ID | tee model/w >log.txt; '
        "exit $((SLURM_ARRAY_TASK_ID == 4 ? 3 : 0))"
    )
    job = site.towline.submit(
        "--array", "1,4-5", *KEYS, "--time", "2m", "--partition", "cpu", *outputs, "--", "sh", "-c", command
    )
    assert site.towline("wait", job).code == 3
    words: list[str] = []

    def told() -> bool:
        words.append(site.towline("results", "--json", job).json["results"][0]["outputs"])
        return "taken to" in words[-1] and "will be" not in words[-1] and "are being" not in words[-1]

    until(told, 60, "the delivery")
    assert f"were taken to s3://{site.store.bucket}/sweep/TASK/, {kept}/TASK/" in words[-1]
    assert "those of 1 tasks that did not succeed stay (4)" in words[-1]
    assert [site.store.get(f"sweep/{task}/w") for task in (1, 5)] == [b"1\n", b"5\n"]
    assert as_alice(site.lab, f"cd {kept} && grep -r '' | sort").split() == ["1/log.txt:1", "5/log.txt:5"]


def test_a_file_comes_over_https(site: Site) -> None:
    folder = web_folder(site.lab.paths) / site.store.bucket
    folder.mkdir()
    (folder / "words.txt").write_text("over the web\n")
    uri = f"https://store.lab:{WEB_TLS_PORT}/{site.store.bucket}/words.txt"
    trusted = ("--env", "SSL_CERT_FILE=/lustre/web.pem")
    distrusted = site.towline("plan", "--input", f"/words={uri}", *GPU, "--", "true")
    assert "CERTIFICATE_VERIFY_FAILED" in distrusted.out
    done = site.towline("run", *trusted, "--input", f"/words={uri}", *GPU, "--", "cat", "/words")
    assert (done.code, done.out) == (0, "over the web\n"), done


def test_roots_of_datasets_fill_the_specification_that_the_job_finds(site: Site, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[train]\nepoch = 3\n")
    own = ("--network", "cosmos-rl", "--specs", str(tmp_path / "config.toml"), *KEYS, "--partition", "cpu")
    root = site.store.put("set/video.mp4", b"film").removesuffix("/video.mp4")
    lacking = site.towline("plan", *own, "--dataset", f"train={root}", "--", "true")
    assert lacking.code == 65
    assert f"{root}/annotations.json" in lacking.out
    lost = site.towline("run", *own, "--dataset", f"train={site.place}/none", "--", "true")
    assert lost.code == 65
    assert f"{site.place}/none/annotations.json" in lost.err
    site.store.put("set/annotations.json", b"[1]\n")
    words = ("--dataset", f"train={root}", "--image", "/lustre/images/python.sqsh", "--time", "2m", "--shell")
    show = 'cat /data/train/annotations.json; grep -c "epoch. = 3" "$TOWLINE_SPECS"; grep path "$TOWLINE_SPECS"'
    done = site.towline("run", *own, *words, show)
    assert done.code == 0, done
    lines = ["[1]", "1", '"annotation_path" = "/data/train/annotations.json"', '"media_path" = "/data/train"']
    assert done.out.splitlines() == lines


def test_a_small_file_is_brought_by_the_job_itself_and_a_large_one_is_not(site: Site) -> None:
    uri = site.store.put("config.toml", b"lr = 1\n")
    fetch = (*KEYS, "--input", f"/config.toml={uri}", "--fetch", "/config.toml=in-job", *GPU)
    done = site.towline("run", *fetch, "--", "cat", "/config.toml")
    assert (done.code, done.out) == (0, "lr = 1\n"), done
    assert site.on("cpu") == []
    job = site.towline.submit(*fetch, "--sbatch", "hold", "--", "cat", "/config.toml")
    site.store.remove("config.toml")
    as_alice(site.lab, "squeue --me -h -o %i | xargs scontrol release")
    assert site.towline("wait", job).code == 1
    assert "an input that the job brings itself could not be brought" in site.towline.job(job)["note"]
    folder = web_folder(site.lab.paths) / site.store.bucket
    folder.mkdir()
    with (folder / "set.tar").open("wb") as large:
        large.truncate(2 << 30)
    large_uri = f"http://store.lab:{WEB_PORT}/{site.store.bucket}/set.tar"
    refused = site.towline("plan", "--input", f"/set.tar={large_uri}", "--fetch", "/set.tar=in-job", *GPU, "--", "true")
    assert refused.code == 65
    assert "has 2.0 GiB, and its job's own nodes would wait" in refused.out


def test_results_go_away_after_an_attempt_that_a_client_has_started(site: Site) -> None:
    """What waited for the first attempt has found it failed, and is gone."""
    line = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."
    command = f'[ "$TOWLINE_ATTEMPT" -gt 1 ] || {{ echo "{line}" >&2; exit 1; }}; echo on >"$TOWLINE_RESULTS_DIR/model"'
    outputs = ("--output", f"model=s3://{site.store.bucket}/healed")
    with fault(site.lab, "no-scontrol-on-nodes"), fault(site.lab, "no-submit-from-nodes"):
        job = site.towline.submit(*KEYS, *GPU, *outputs, "--", "sh", "-c", command)
        delivery = f"{site.towline.job(job)['directory']}/outputs/imports/all/attempts/1"
        # Nobody looks at the job meanwhile, or it would go on.
        as_alice(site.lab, f"for i in $(seq 100); do [ ! -e {delivery}/end ] || exit 0; sleep 0.3; done; exit 1")
    assert site.towline("wait", job).code == 0
    assert len(site.towline.job(job)["attempts"]) == 2

    def told() -> str:
        return site.towline("results", "--json", job).json["results"][0]["outputs"]

    until(lambda: "were" in told(), 60, "the delivery")
    assert "were taken to" in told()
    assert site.store.get("healed") == b"on\n"
    assert as_alice(site.lab, f"grep -rlF {site.store.secret} /lustre/alice/towline/jobs || true") == ""
