"""Checks of Slurm, the container runtime and the root: facts in, verdict and fix out."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.unit.engine.doctor.healthy import answer, deep, facts, finding, login
from towline.engine.doctor import scheduler
from towline.engine.doctor.checks import examine, exit_status
from towline.engine.doctor.facts import Kind, Repair
from towline.models.plan import Verdict
from towline.slurm.doctor import Answer, parse_answer

OK, FAILS, CANNOT_TELL = Verdict.OK, Verdict.FAILS, Verdict.CANNOT_TELL
NO_SLURM = parse_answer("@fact login\n>user me\n@fact no-slurm\n!sbatch was not found; PATH is /bin\n@end\n")
Changes = tuple[tuple[str, str], ...]


def query(name: str, code: int, words: str) -> tuple[str, str]:
    return f"@query 0 {name} - -\n", f"@query {code} {name} - -\n!{words}\n"


@pytest.mark.parametrize(
    ("name", "settings", "changes", "verdict", "evidence", "fix"),
    [
        ("slurm", {}, (("23.11.4\n@query 0 config", "19.05.3\n@query 0 config"),), FAILS, "too old", "newer Slurm"),
        (
            "slurm",
            {},
            ((">path /usr/bin/sbatch", ">path /usr/bin/sbatch\n>missing sacct"),),
            FAILS,
            "sacct",
            "setup =",
        ),
        (
            "slurm",
            {},
            (query("config", 1, "Unable to contact slurm controller"),),
            FAILS,
            "does not answer",
            "try again",
        ),
        (
            "partition",
            {"partition": "nosuch"},
            (),
            FAILS,
            "there is no partition nosuch",
            "gpu (4 nodes, 8 GPUs (h100)",
        ),
        ("partition", {"partition": "old"}, (), FAILS, "takes no jobs", "cpu"),
        ("partition", {}, (("Default=YES", "Default=NO"),), FAILS, "no partition is named", "gpu"),
        ("limits", {"time": "4h"}, (), OK, "04:00:00", ""),
        ("limits", {"time": "5h"}, (), FAILS, "allows 04:00:00", 'time = "04:00:00"'),
        ("limits", {"time": "5h", "partition": "gpu,cpu"}, (), OK, "05:00:00", ""),
        (
            "account",
            {"account": "wrong"},
            (query("trial-none", 1, "sbatch: error: Invalid account or account/partition combination specified"),),
            FAILS,
            "Invalid account",
            "Set `account` in the profile to research (it is wrong).",
        ),
        (
            "account",
            {},
            (query("trial-none", 1, "Invalid account"), (">alps|research||long,normal|normal\n", "")),
            FAILS,
            "Invalid account",
            "Ask the site for an account for me",
        ),
        ("account", {"qos": "x"}, (query("trial-none", 1, "Invalid qos specification"),), FAILS, "qos", "long, normal"),
        ("account", {}, (query("trial-none", 1, "Unable to contact slurm controller"),), CANNOT_TELL, "contact", ""),
        (
            "account",
            {},
            (query("trial-none", 1, "allocation failure: Requested node configuration is not available"),),
            CANNOT_TELL,
            "nodes may be down",
            "sinfo -R",
        ),
        ("slurm", {}, (query("version", 126, "sbatch: Permission denied"),), FAILS, "cannot be run", "setup ="),
        ("accounting", {}, (query("accounting", 1, "Connection refused"),), FAILS, "sacct fails", "slurmdbd"),
        ("accounting", {}, (query("accounting", 1, "Slurm accounting storage is disabled"),), OK, "off", ""),
        ("min-job-age", {}, (("300 sec", "10 sec"),), OK, "10 s", ""),
        (
            "min-job-age",
            {},
            (("300 sec", "10 sec"), query("accounting", 1, "Slurm accounting storage is disabled")),
            FAILS,
            "forgotten after 10 s",
            "poll_interval = 5",
        ),
        ("requeue", {}, (("JobRequeue              = 1", "JobRequeue              = 0"),), OK, "off", ""),
        (
            "gpu-request",
            {},
            (query("trial-gres", 1, "You must always specify a type"), query("trial-gpus-per-node", 1, "no")),
            FAILS,
            "gres is refused",
            'gpu_request = "gres-typed"',
        ),
        ("gpu-request", {"partition": "cpu"}, (query("trial-gres", 1, "not available"),), OK, "no GPUs", ""),
        (
            "gpu-request",
            {},
            tuple(query(f"trial-{way}", 1, "no") for way in ("gres", "gpus-per-node", "gres-typed")),
            FAILS,
            "no way to ask",
            "partition",
        ),
        ("pyxis", {}, ((">option --container-image\n", ""),), FAILS, "no --container-image", "Pyxis"),
        ("pyxis", {}, (("plugin required", "plugin optional"),), OK, "optional", ""),
        ("enroot", {}, (query("enroot", 1, "cannot open enroot.conf"),), FAILS, "enroot fails", "Ask the site"),
        ("enroot", {}, (("@query 0 enroot - -\n>3.5.0\n", ""),), CANNOT_TELL, "nodes may", "towline doctor --deep"),
        ("enroot-space", {}, (("CACHE yes", "CACHE no"),), FAILS, "cannot be written", "ENROOT_CACHE_PATH"),
        ("enroot-space", {}, (("TEMP yes 9000000", "TEMP yes 900"),), FAILS, "/tmp has 0.0 GiB", "ENROOT_TEMP_PATH"),
        ("staging", {}, (), OK, "brought on cpu; Python 3.9.18 asks its sources", ""),
        ("staging", {"import_partition": "x"}, (), CANNOT_TELL, "no partition x", "`import_partition` to one of gpu"),
        ("staging", {}, (("@fact python\n>version 3.9.18\n", ""),), CANNOT_TELL, "no Python", "`staging_python`"),
        (
            "staging",
            {"staging_python": "/x/python"},
            (("@fact python\n>version 3.9.18\n", ""),),
            FAILS,
            "`staging_python` names /x/python, which is not",
            "Correct `staging_python`",
        ),
        ("credentials", {}, ((">600 /home", ">644 /home"),), FAILS, "mode 644", "chmod 600 /home/me/.config"),
        ("credentials", {}, ((">600 /home", ">- /home"),), FAILS, "there is no", "towline registry login nvcr.io"),
        ("credentials", {"image": "ubuntu"}, ((">600 /home", ">- /home"),), OK, "need none", ""),
        ("credentials", {}, ((">authn.nvidia.com $oauthtoken\n", ""),), FAILS, "authn.nvidia.com", "registry login"),
        ("root", {}, ((">is directory", ">is other"),), FAILS, "not a directory", "mv"),
        ("root", {}, ((">owner 1000", ">owner 0"),), FAILS, "another user", "root"),
        ("root", {}, ((">mode 700", ">mode 777"),), FAILS, "others|other users may write", "chmod 700"),
        ("root", {}, ((">room yes", ">room no"),), FAILS, "cannot write in /lustre/me/towline", "chmod u+rwx"),
        (
            "root",
            {},
            ((">probe written", "!Disk quota exceeded"),),
            FAILS,
            "Disk quota exceeded",
            "Delete what you do not need",
        ),
        ("root", {}, ((">probe written", "!Read-only file system"),), FAILS, "Read-only", "mounted read-only"),
        (
            "root",
            {},
            ((">is directory", ">is missing"), (">near /lustre/me/towline", ">near /")),
            FAILS,
            "nothing of",
            "root",
        ),
        (
            "root",
            {},
            ((">is directory", ">is missing"), (">near /lustre/me/towline", ">near /lustre/me")),
            OK,
            "made",
            "",
        ),
        ("quota", {}, (("512  1000", "2000* 1000"),), FAILS, "used up", "Delete"),
        ("quota", {}, ((">Disk", "!x\n>Disk"),), OK, "not used up", ""),
        ("inodes", {}, (("90000000 500000", "90000000 3"),), FAILS, "3 files more", "Delete"),
        ("inodes", {}, (("90000000 500000", "90000000 0"),), OK, "0 free", ""),
        ("space", {}, (("yes 90000000", "yes 900"),), FAILS, "0.0 GiB", "Delete"),
        ("space", {}, (("yes 90000000", "yes -"),), CANNOT_TELL, "does not tell", ""),
    ],
)
def test_a_check(
    name: str, settings: dict[str, Any], changes: Changes, verdict: Verdict, evidence: str, fix: str
) -> None:
    found = finding(name, facts(login(answer=answer(*changes)), **settings))
    assert found.verdict is verdict, found
    assert any(text in found.evidence for text in evidence.split("|")), found.evidence
    assert fix in found.fix if fix else not found.fix


def test_without_slurm_the_root_is_looked_at_all_the_same() -> None:
    found = facts(login(answer=NO_SLURM))
    assert "setup" in finding("slurm", found).fix
    assert finding("pyxis", found).verdict is CANNOT_TELL
    assert exit_status(examine(found)) == Kind.CLUSTER.value


def test_slurm_on_the_second_host_is_found() -> None:
    found = facts(login(answer=NO_SLURM), login("login2"))
    assert finding("slurm", found, "login1").verdict is FAILS
    assert finding("partition", found).verdict is OK


def test_login_hosts_of_two_clusters() -> None:
    other = answer(("= alps", "= jura"))
    found = finding("cluster-name", facts(login(), login("login2", answer=other)))
    assert found.verdict is FAILS
    assert "for alps: login1" in found.fix


def test_login_hosts_that_do_not_share_the_root() -> None:
    alone = answer((">probe written", ">probe unseen"))
    found = finding("root-shared", facts(login(), login("login2", answer=alone)))
    assert found.verdict is FAILS
    assert "not seen on login2" in found.evidence
    assert finding("root-shared", facts(login())).verdict is OK


def test_credentials_that_are_open_can_be_made_private() -> None:
    found = finding("credentials", facts(login(answer=answer((">600 /home", ">640 /home")))))
    assert found.repair == Repair("chmod-there", "/home/me/.config/enroot/.credentials")


# --- What only a job can tell ---


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "evidence", "fix"),
    [
        ("deep-job", (), OK, "node1", ""),
        ("deep-root", (), OK, "written", ""),
        (
            "deep-root",
            (("@fact node-root\n>written", "@fact node-root\n!No such file"),),
            FAILS,
            "No such file",
            "nodes see",
        ),
        ("deep-container", (), OK, "Debian 12", ""),
        ("deep-container", ((">inside\n", ""),), FAILS, "bare node", "required"),
        (
            "deep-container",
            (query("container", 1, "slurmstepd: error: pyxis:     [ERROR] No such file or directory: /x.sqsh"),),
            FAILS,
            "No such file or directory: /x.sqsh",
            "towline registry check",
        ),
        ("deep-gpus", (), OK, "1 seen", ""),
        ("deep-gpus", ((">gpu GPU 0: NVIDIA H100\n", ""),), FAILS, "sees no GPU", "98-nvidia.sh"),
        (
            "deep-gpus",
            ((">gpu GPU 0: NVIDIA H100", ">smi No devices were found"),),
            FAILS,
            "No devices",
            "Ask the site",
        ),
        ("deep-gpus", ((">gpu GPU 0: NVIDIA H100", ">no-nvidia-smi"),), CANNOT_TELL, "no nvidia-smi", ""),
        ("deep-gpus", (query("container", 1, "x"),), CANNOT_TELL, "did not start", ""),
        ("deep-gpus", ((">gpus 0", ">gpus -"),), OK, "asked for none", ""),
        ("deep-enroot", (("DATA yes", "DATA no"),), FAILS, "/raid/enroot", "ENROOT_DATA_PATH"),
        ("deep-credentials", ((">600 /home", ">- /home"),), FAILS, "not on the node", "ENROOT_CONFIG_PATH"),
        ("deep-credentials", ((">600 /home", ">666 /home"),), FAILS, "666", "chmod 600"),
        ("deep-next-attempt", (), OK, "scontrol requeue and by sbatch", ""),
        ("deep-next-attempt", (query("requeue", 1, "disabled"),), OK, "by sbatch from the node", ""),
        (
            "deep-next-attempt",
            (query("requeue", 1, "disabled"), query("sbatch", 1, "denied")),
            CANNOT_TELL,
            "cannot start itself again (disabled; denied)",
            "client running",
        ),
    ],
)
def test_what_only_a_job_can_tell(name: str, changes: Changes, verdict: Verdict, evidence: str, fix: str) -> None:
    found = finding(name, facts(deep_answer=deep(*changes)))
    assert found.verdict is verdict, found
    assert evidence in found.evidence
    assert fix in found.fix if fix else not found.fix


@pytest.mark.parametrize(
    ("text", "verdict", "evidence"),
    [
        ("@query 1 submit - -\n!sbatch: error: Invalid account\n@end\n", FAILS, "sbatch refused it"),
        (
            "@query 0 submit - -\n>41\n@query 0 state - -\n>PENDING|Resources\n@fact deep\n@end\n",
            CANNOT_TELL,
            "Resources",
        ),
        ("@query 0 submit - -\n>41\n@query 0 state - -\n>FAILED|JobLaunchFailure\n@end\n", FAILS, "JobLaunchFailure"),
        ("@fact no-place\n!No space left on device\n@end\n", FAILS, "No space left"),
        ("", CANNOT_TELL, "no login host"),
    ],
)
def test_a_job_that_did_not_run(text: str, verdict: Verdict, evidence: str) -> None:
    found = facts(deep_answer=parse_answer(text))
    assert (job := finding("deep-job", found)).verdict is verdict
    assert evidence in job.evidence
    assert finding("deep-container", found).verdict is CANNOT_TELL


def test_no_secret_is_taken_from_a_credentials_frame() -> None:
    assert answer().credentials.machines == (("nvcr.io", "$oauthtoken"), ("authn.nvidia.com", "$oauthtoken"))
    assert Answer().credentials.mode == ""


def test_before_a_profile_is_written_a_fix_names_the_flag() -> None:
    asked = facts(partition="nosuch")
    (before,) = scheduler.partition(dataclasses.replace(asked, drafted=True))
    (after,) = scheduler.partition(asked)
    assert before.fix.startswith("Give `--partition` one of these: ")
    assert after.fix.startswith("Set `partition` in the profile to one of these: ")
