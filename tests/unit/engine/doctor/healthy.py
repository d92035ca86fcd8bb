"""Facts of a cluster where nothing is wrong, to change one thing in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from towline.config.profile import ClusterProfile
from towline.engine.doctor.checks import examine
from towline.engine.doctor.facts import Facts, Finding, Here, KeyFile, Login
from towline.models.plan import Verdict
from towline.remote.ssh.keys import Agent, HostKey
from towline.slurm.doctor import Answer, Reply, parse_answer

KEY = "/home/me/.ssh/id_alps"
PRINT = "SHA256:key"
ANSWER = """\
@fact login
>user me
>uid 1000
>host login1
>shell /bin/tcsh
>home /home/me
@fact root
>is directory
>near /lustre/me/towline
>room yes 90000000 500000 lustre
>owner 1000
>mode 700
>inode 7
>mount fs@tcp:/lustre /lustre
>probe written
@query 0 quota - -
>Disk quotas for usr me (uid 1000):
>     /lustre  512  1000 2000 - 10 100 200 -
@fact slurm
>path /usr/bin/sbatch
@query 0 version - -
>slurm 23.11.4
@query 0 config - -
>ClusterName             = alps
>JobRequeue              = 1
>MinJobAge               = 300 sec
>SLURM_VERSION           = 23.11.4
@query 0 partitions - -
>PartitionName=gpu Default=YES State=UP MaxTime=04:00:00 MaxNodes=UNLIMITED TotalNodes=4
>PartitionName=cpu Default=NO State=UP MaxTime=1-00:00:00 MaxNodes=UNLIMITED TotalNodes=1
>PartitionName=old Default=NO State=DOWN MaxTime=01:00:00 MaxNodes=UNLIMITED TotalNodes=1
@query 0 nodes - -
>gpu|4|32|128000|gpu:h100:8
>cpu|1|16|64000|(null)
>old|1|16|64000|(null)
@query 0 associations - -
>alps|research||long,normal|normal
@query 0 accounting - -
@query 0 trial-none - -
@query 0 trial-gres - -
@query 0 trial-gpus-per-node - -
@query 0 trial-gres-typed - -
@fact pyxis
>option --container-image
>option --container-mounts
>plugin required /usr/lib/slurm/spank_pyxis.so
>version 0.20.0
@query 0 enroot - -
>3.5.0
@fact enroot-places
>RUNTIME yes 9000000 500000 tmpfs /run/enroot
>CACHE yes 9000000 500000 xfs /home/me/.cache/enroot
>DATA yes 9000000 500000 xfs /home/me/.local/share/enroot
>TEMP yes 9000000 500000 xfs /tmp
@fact python
>version 3.9.18
@fact credentials
>600 /home/me/.config/enroot/.credentials
>nvcr.io $oauthtoken
>authn.nvidia.com $oauthtoken
@end
"""
DEEP = """\
@query 0 submit - -
>41
@fact node
>host node1
>restarts 0
>gpus 0
>system Ubuntu 22.04
@fact node-root
>written
@fact enroot-places
>DATA yes 9000000 500000 xfs /raid/enroot
@fact credentials
>600 /home/me/.config/enroot/.credentials
@query 0 container - -
>inside
>system Debian 12
>written
>gpu GPU 0: NVIDIA H100
@query 0 sbatch - -
@query 0 requeue - -
@end
"""


def profile(**settings: Any) -> ClusterProfile:
    given = {"hosts": "login1,login2", "root": "/lustre/me/towline", "image": "nvcr.io/nvidia/pytorch:24.07-py3"}
    return ClusterProfile.model_validate({"name": "alps", **given, **settings})


def answer(*changes: tuple[str, str]) -> Answer:
    """The healthy answer with texts in it replaced."""
    return parse_answer(changed(ANSWER, changes))


def deep(*changes: tuple[str, str]) -> Answer:
    return parse_answer(changed(DEEP, changes))


def changed(text: str, changes: Sequence[tuple[str, str]]) -> str:
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def login(host: str = "login1", **given: Any) -> Login:
    base = Login(
        host,
        f"{host}.alps",
        "me",
        keys=("~/.ssh/id_ed25519",),
        known_files=("/home/me/.ssh/known_hosts",),
        addresses=("10.0.0.1",),
        banner="SSH-2.0-OpenSSH_9.2",
        known=(HostKey("ED25519", "SHA256:known"),),
        reached=True,
        sessions=4,
        answer=answer() if host == "login1" else answer((">probe written", ">probe seen")),
    )
    return replace(base, **given)


def unreached(words: str = "", **given: Any) -> Login:
    return login(reached=False, answer=Answer(), words=words, **given)


def facts(*logins: Login, here: Here | None = None, deep_answer: Answer | None = None, **settings: Any) -> Facts:
    key = KeyFile(KEY, 0o600, fingerprint=PRINT)
    machine = here or Here("OpenSSH_9.2p1", key, Agent())
    return Facts(profile(**settings), machine, logins or (login(), login("login2")), deep_answer)


def finding(name: str, found: Facts, host: str = "") -> Finding:
    """The one finding of that name, for the host if one is given."""
    (one,) = [each for each in examine(found) if each.id == name and (not host or each.host == host)]
    return one


def reply(code: int, words: str) -> Reply:
    return Reply(code, "", words)


def verdicts(found: Facts) -> dict[str, Verdict]:
    return {f"{each.id} {each.host}".strip(): each.verdict for each in examine(found)}
