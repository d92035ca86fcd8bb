"""Inputs, uploads and going on, of jobs of `build_entrypoint` in containers on real nodes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile

import pytest

from harness.store import ENDPOINT, Store, open_store
from tests.lab.faulty import as_alice
from tests.lab.tao_jobs import IMAGE, ended, until
from tests.unit.runner.shop import opened
from towline.lab import Lab
from towline.lab.layout import ALICE, UPLINK_ADDRESS, WEB_PORT
from towline.lab.store.daemon import web_folder
from towline.tao.platforms.slurm import SlurmSDK
from towline.tao.script_runner import build_entrypoint

SIZE = 20 << 20


@pytest.fixture
def store(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A bucket of the lab's store, with the variables that scripts of TAO name it by."""
    store = open_store(lab)
    monkeypatch.setenv("S3_ENDPOINT_URL", ENDPOINT)
    monkeypatch.setenv("ACCESS_KEY", store.access)
    monkeypatch.setenv("SECRET_KEY", store.secret)
    return store


def archive(*members: tuple[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


READ = r"""
python3 - {config_path} <<'EOF'
import hashlib, json, os, sys, time
specs = json.load(open(sys.argv[1]))
data, big = specs["data"], specs["big"]
said = {
    "big": hashlib.md5(open(big, "rb").read()).hexdigest(),
    "images": sorted(os.listdir(data["images"])),
    "media": sorted(os.listdir(data["media"])),
    "names": [os.path.basename(data["labels"]), os.path.basename(big)],
}
print(json.dumps(said, sort_keys=True), flush=True)
open(specs["out"] + "/epoch_1.pth", "w").write("state")
open(specs["out"] + "/said-" + os.environ["NODE_RANK"], "w").close()
while not all(os.path.exists(specs["out"] + "/said-" + rank) for rank in "01"):
    time.sleep(0.1)  # the first that fails ends the other
sys.exit(4)
EOF
"""


def test_two_nodes_bring_an_input_once_and_a_failed_job_takes_its_checkpoints_away(
    sdk: SlurmSDK, lab: Lab, store: Store
) -> None:
    content = os.urandom(SIZE)
    for number in range(3):
        store.put(f"media/{number}.mp4", b"%d" % number)
    folder = web_folder(lab.paths) / store.bucket
    folder.mkdir()
    (folder / "big.bin").write_bytes(content)
    data = {
        "images": store.put("images.tar.gz", archive(("images/a.png", b"a"), ("images/b.png", b"b"))),
        "media": f"s3://{store.bucket}/media",
        "labels": store.put("labels.json", json.dumps([{"video": "0.mp4"}, {"video": "2.mp4"}]).encode()),
    }
    big = f"http://store.lab:{WEB_PORT}/{store.bucket}/big.bin"
    media = {"selective": {"annotation": "data.labels", "format": "json", "keys": ["video"]}}
    entry = build_entrypoint(
        command=READ,
        specs={"data": data, "big": big, "out": f"s3://{store.bucket}/out"},
        inputs={"data.images": {}, "data.labels": {}, "data.media": media, "big": {}},
        outputs=["out"],
        config_format="json",
    )
    job = sdk.create_job(IMAGE, entry["command"], gpu_count=0, num_nodes=2)
    assert ended(sdk, job.id) == "Error"
    logs = sdk.get_job_logs(job.id)
    wanted = {
        "big": hashlib.md5(content).hexdigest(),  # noqa: S324
        "images": ["a.png", "b.png"],
        "media": ["0.mp4", "2.mp4"],
        "names": ["labels.json", "big.bin"],
    }
    assert logs.count(json.dumps(wanted, sort_keys=True)) == 2, logs
    served = (lab.paths.log / "web.log").read_text().splitlines()
    assert len([line for line in served if line.startswith(f"GET /{store.bucket}/big.bin")]) == 1, served
    for uri in (big, *data.values()):
        assert logs.count(f"towline: bringing {uri}:") == 1, logs
    assert store.get("out/epoch_1.pth") == b"state"
    assert (sdk.get_failure_analysis(job.id) or {})["exit_code"] == 4


def test_what_cannot_be_had_keeps_the_command_from_starting_and_is_told(sdk: SlurmSDK, store: Store) -> None:
    evil = store.put("evil.tar.gz", archive(("set/a", b"a"), ("../../../../escaped", b"x")))
    missing = f"s3://{store.bucket}/nothing"
    texts = [
        build_entrypoint(command="echo it has begun", args={"d": uri}, inputs=["d"])["command"]
        for uri in (evil, missing)
    ]
    jobs = [sdk.create_job(IMAGE, text, gpu_count=0) for text in texts]
    assert [ended(sdk, job.id) for job in jobs] == ["Error", "Error"]
    refused, absent = (sdk.get_job_logs(job.id) for job in jobs)
    before = "towline: the command was not started"
    assert f"{before} (names): the archive {evil} is refused: '../../../../escaped' in it leads out of it" in refused
    assert f"{before} (not-found): {missing}: there is no such object, and none below it" in absent
    assert (sdk.get_failure_analysis(jobs[0].id) or {})["retriable"] is False, "it was tried once"
    assert "it has begun" not in refused + absent


def test_an_output_that_cannot_be_taken_away_fails_a_job_that_had_succeeded(sdk: SlurmSDK, store: Store) -> None:
    gone = f"s3://{store.bucket}-none/out"
    entry = build_entrypoint(command="mkdir /tmp/out && echo x >/tmp/out/a && echo trained", outputs={"/tmp/out": gone})
    job = sdk.create_job(IMAGE, entry["command"], gpu_count=0)
    assert ended(sdk, job.id) == "Error"
    logs = sdk.get_job_logs(job.id)
    assert "trained\n" in logs
    assert f"/tmp/out could not be taken to {gone}: " in logs
    assert (sdk.get_failure_analysis(job.id) or {})["exit_code"] == 1
    assert (sdk.get_job(job.id) or {})["slurm_metadata"]["retry_count"] == 0, "training again would end alike"


SHOW = 'echo on $SLURMD_NODENAME; wc -c <"$(cut -d \'"\' -f 2 {config_path})/a"'


def test_another_node_goes_on_where_the_one_that_brings_an_input_was_killed(
    tao_variables: dict[str, str], lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    del tao_variables
    monkeypatch.setenv("SLURM_MAX_GPUS_PER_NODE", "1")  # each job has a node of its own
    monkeypatch.setenv("SLURM_USE_REQUEUE", "false")  # and the one that is killed does not go on by itself
    mirror = f"/lustre/{ALICE.name}/tao-mirror"
    as_alice(lab, f"rm -rf {mirror}; mkdir {mirror}")
    with opened(UPLINK_ADDRESS) as shop:
        for name, value in shop.env.items():
            monkeypatch.setenv(name, value)
        shop.objects = {"b/set/a": bytes(SIZE)}
        shop.open.clear()
        text = build_entrypoint(command=SHOW, specs={"d": "s3://b/set"}, inputs=["d"], mount_path=mirror)["command"]
        with SlurmSDK(poll_interval=1) as sdk:
            first = sdk.create_job(IMAGE, text, gpu_count=1)
            until(lambda: shop.gets)
            second = sdk.create_job(IMAGE, text, gpu_count=1)
            until(lambda: "where s3://b/set is brought" in sdk.get_job_logs(second.id))
            as_alice(lab, f"scancel --signal=KILL {(sdk.get_job(first.id) or {})['slurm_job_id']}")
            assert ended(sdk, first.id) != "Complete"
            shop.open.set()
            assert ended(sdk, second.id) == "Complete"
            logs = sdk.get_job_logs(second.id)
    waited = re.search(r"waiting for (\S+), where", logs)
    assert waited
    assert f"on {waited[1]}\n" not in logs, "it was another node"
    assert f"{SIZE}\n" in logs
    assert as_alice(lab, f"find {mirror} -type f -name a -size {SIZE}c | wc -l").strip() == "1"


TRAIN = r"""
python3 - {config_path} <<'EOF'
import json, os, pickle, sys, time, zipfile
specs = json.load(open(sys.argv[1]))
out, begin = specs["out"], specs["train"][0]["resume_training_checkpoint_path"]
def save(name, step):
    with zipfile.ZipFile(os.path.join(out, name), "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps({"epoch": step, "global_step": step * 10}))
        file.writestr("archive/data/0", bytes(1000))
print("from", os.path.basename(begin or "the beginning"), flush=True)
if not begin:
    for step in (3, 2, 1):
        save("epoch_%d.pth" % step, step)
    os.truncate(os.path.join(out, "epoch_3.pth"), 700)
    print("saved", flush=True)
    time.sleep(100)
EOF
"""


def test_a_job_that_starts_again_goes_on_from_what_is_whole(sdk: SlurmSDK, lab: Lab) -> None:
    specs = {"out": "out", "train": [{"resume_training_checkpoint_path": ""}]}
    entry = build_entrypoint(command=TRAIN, specs=specs, outputs=["out"], config_format="json")
    job = sdk.create_job(IMAGE, entry["command"], gpu_count=0)
    until(lambda: "saved" in sdk.get_job_logs(job.id))
    as_alice(lab, f"scontrol requeue $(squeue --me -h -n tao-job-{job.id}-a1 -o %i)")
    until(lambda: "from epoch_" in sdk.get_job_logs(job.id))
    assert ended(sdk, job.id) == "Complete"
    logs = sdk.get_job_logs(job.id)
    assert "from epoch_2.pth\n" in logs, "the furthest that is whole, not the newest"
    assert "epoch_3.pth: it ends too early" in logs
