"""Commands of `build_entrypoint` as jobs of TAO's SDK, in containers on real nodes."""

from __future__ import annotations

import json

import pytest

from tests.lab.tao_jobs import BASE, IMAGE, ended, text_of, until
from towline.lab import Lab
from towline.models.errors import PlanRefused
from towline.tao.platforms.slurm import SlurmSDK
from towline.tao.script_runner import build_entrypoint

READ = r"""
awk 'BEGIN { x["a b"] = "{y}"; for (k in x) { printf "%s %s %s\n", k, x[k], ENVIRON["NODE_RANK"] } }'
python3 - "{config_path}" '{config_path}' <<'EOF'
import os, sys, tomllib
assert sys.argv[1] == sys.argv[2]
specs = tomllib.load(open(sys.argv[1], "rb"))
names = specs["data"]["names"]
print(len(names), sum(map(len, names)), specs["train"]["lr"], specs["model"])
open(specs["results_dir"] + "/of-{}".format(os.environ["NODE_RANK"]), "w").write("made\n")
EOF
"""


def test_a_job_of_each_mode(sdk: SlurmSDK, lab: Lab) -> None:
    names = [f"/lustre/data/images/{number:06d}.jpg" for number in range(5_000)]
    specs = {
        "data": {"names": names},
        "train": {"lr": 1e-05},
        "model": f"lustre://{BASE}/model.pth",
        "results_dir": "output",
    }
    assert len(json.dumps(specs)) > 150_000
    args = {"text": "it's {a} $HOME", "values": [2, 4], "out": None}
    fails = "mkdir /tmp/own; echo made >/tmp/own/file; echo '{config}' $((40 + 2)); exit 7"
    texts = [
        build_entrypoint(command=READ, specs=specs, outputs=["results_dir"]),
        build_entrypoint(command="printf '<%s>'", args=args, outputs=["out"], flags=["x"]),
        build_entrypoint(command=fails, outputs=["/tmp/own"]),
    ]
    jobs = [
        sdk.create_job(IMAGE, text["command"], gpu_count=0, num_nodes=nodes)
        for text, nodes in zip(texts, (2, 1, 1), strict=True)
    ]
    assert [ended(sdk, job.id) for job in jobs] == ["Complete", "Complete", "Error"]
    with_config, with_args, as_it_is = (sdk.get_job_logs(job.id) for job in jobs)
    assert with_config.count(f"5000 {sum(map(len, names))} 1e-05 {BASE}/model.pth\n") == 2
    assert "a b {y} 0\n" in with_config
    assert "a b {y} 1\n" in with_config
    assert sdk.list_path(f"{BASE}/results/{jobs[0].id}/results_dir") == ["of-0", "of-1"]
    out = f"{BASE}/results/{jobs[1].id}/out"
    assert with_args == f"<--text><it's {{a}} $HOME><--values><[2, 4]><--out><{out}><--x>"
    assert "{config} 42\n" in as_it_is
    assert (sdk.get_failure_analysis(jobs[2].id) or {})["exit_code"] == 7
    kept = text_of(lab, f"{BASE}/results/{jobs[2].id}/own/file")
    assert kept == "made\n", "what a failed command left in the container is kept, too"


SAVES = r"""
mkdir /tmp/out
python3 -c '
import signal, sys, time
def save(*_):
    time.sleep(1)
    open("/tmp/out/saved", "w").write("step 7")
    sys.exit(5)
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
signal.pause()
'; echo not reached
"""


def test_a_command_that_is_told_to_stop_can_save(sdk: SlurmSDK, lab: Lab) -> None:
    job = sdk.create_job(IMAGE, build_entrypoint(command=SAVES, outputs=["/tmp/out"])["command"], gpu_count=0)
    until(lambda: "begun" in sdk.get_job_logs(job.id))
    assert sdk.cancel_job(job.id)
    assert ended(sdk, job.id) == "Canceled"
    assert text_of(lab, f"{BASE}/results/{job.id}/out/saved") == "step 7"
    assert "not reached" not in sdk.get_job_logs(job.id)


NGCSDK = """
import os
class Client:
    def __init__(self, api_key=None):
        self.registry = self.model = self
    def configure(self, api_key=None, org_name=None, team_name=None):
        self.told = [len(api_key), org_name, team_name]
    def download_version(self, target, destination="."):
        os.makedirs(destination + "/net_v1.0")
        with open(destination + "/net_v1.0/net.pth", "w") as file:
            print(*self.told, target, file=file)
"""


def test_a_model_of_ngc_comes_by_the_module_of_the_image_or_is_refused_before(
    sdk: SlurmSDK, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NGC_KEY", "nvapi-sesame")
    specs = {"model": "ngc://nvidia/tao/net:1.0"}
    text = build_entrypoint(command="cat $(cut -d '\"' -f 2 {config_path})", specs=specs)
    with pytest.raises(PlanRefused, match=r"python\.sqsh holds neither the Python module ngcsdk nor the program ngc"):
        sdk.create_job(IMAGE, text["command"], gpu_count=0)
    place = f"{BASE}-packages"
    script = f"mkdir -p {place}/ngcsdk && cat >{place}/ngcsdk/__init__.py"
    lab.run_on("login1", ["sh", "-c", script], user="alice", stdin=NGCSDK, check=True)
    job = sdk.create_job(IMAGE, text["command"], gpu_count=0, mounts=[f"{place}:/usr/lib/python3/dist-packages:ro"])
    assert ended(sdk, job.id) == "Complete", sdk.get_job_logs(job.id)
    logs = sdk.get_job_logs(job.id)
    assert "12 nvidia tao nvidia/tao/net:1.0\n" in logs
    assert "sesame" not in logs


def test_an_image_without_python_is_refused_and_else_says_so_itself(sdk: SlurmSDK) -> None:
    busybox, text = "/lustre/images/busybox.sqsh", build_entrypoint(command="true")["command"]
    with pytest.raises(PlanRefused, match=r"busybox\.sqsh holds no Python, and the job's command needs one"):
        sdk.create_job(busybox, text, gpu_count=0)
    job = sdk.create_job(busybox, f"export PATH=/lustre/conda/bin:$PATH\n{text}", gpu_count=0)
    assert ended(sdk, job.id) == "Error"
    assert "this image has no Python 3.8 or later" in sdk.get_job_logs(job.id)
