"""What must hold before a job is sent: the login, Slurm, the containers, and whether an image fits the GPUs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from towline.engine.doctor.examination import Doctor
from towline.models.plan import Verdict
from towline.tao.settings import tao_profile

_CAPABILITY = re.compile(r"(?:sm_?|compute_?)?(\d{1,2})\.?(\d)([a-z]?)", re.IGNORECASE)


@dataclass
class PreflightResult:
    """What a check found.

    Attributes:
        ok: whether work may go on.
        message: what was found, and what to do if it is wrong.
        details: more, as plain values.
    """

    ok: bool
    message: str
    details: dict[str, Any] = field(default_factory=dict[str, Any])


def check_cluster() -> list[PreflightResult]:
    """Look at everything that a job needs of the cluster of TAO's variables; nothing is changed there.

    Raises:
        CredentialError: no cluster is named.
    """
    findings = asyncio.run(Doctor(tao_profile()).examine())
    return [
        PreflightResult(
            each.verdict is not Verdict.FAILS,
            " ".join(filter(None, (each.evidence, each.fix if each.verdict is Verdict.FAILS else ""))),
            {"check": each.id, "verdict": each.verdict.value},
        )
        for each in findings
    ]


def parse_compute_capabilities(output: str) -> list[str]:
    """The compute capabilities that `nvidia-smi --query-gpu=compute_cap --format=csv` prints, as `sm_90`, each once."""
    found = (_CAPABILITY.fullmatch(line.strip()) for line in output.splitlines())
    return list(dict.fromkeys(f"sm_{each[1]}{each[2]}" for each in found if each))


def normalize_supported_sms(values: str | Iterable[str] | None) -> set[str]:
    """Compute capabilities however they are written (`9.0`, `sm_90`, `90a`), as `sm_90`; what is none is left out."""
    words = re.split(r"[\s,;]+", values) if isinstance(values, str) else list(values or ())
    found = (_CAPABILITY.fullmatch(word.strip()) for word in words)
    return {f"sm_{each[1]}{each[2]}" for each in found if each}


def check_gpu_architecture_compatibility(
    host_sms: Iterable[str], supported_sms: str | Iterable[str] | None, *, image: str | None = None
) -> PreflightResult:
    """Whether every GPU there is has a compute capability that an image is built for."""
    there, good = normalize_supported_sms(host_sms), normalize_supported_sms(supported_sms)
    details: dict[str, Any] = {"host_sms": sorted(there), "supported_sms": sorted(good)}
    name = image or "the image"
    if not good or not there:
        return PreflightResult(True, f"it cannot be told whether {name} fits the GPUs", details)
    if missing := sorted(there - good):
        text = f"{name} is not built for {', '.join(missing)}; it is for {', '.join(sorted(good))}"
        return PreflightResult(False, text, details)
    return PreflightResult(True, f"{name} fits the GPUs", details)
