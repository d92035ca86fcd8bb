"""Where a job finds its code: mounted for reading in a container, and as its directory without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from towline.config.profile import ClusterProfile
from towline.engine.planning.plans import make_plan
from towline.models.code import Code, CodeFile
from towline.models.errors import SpecError
from towline.models.plan import Plan
from towline.models.site import NodeKind, Partition, SiteFacts
from towline.models.spec import JobSpec

KINDS = (NodeKind(4, 32, 128000, (("h100", 8),), ()),)
FACTS = SiteFacts(
    "lab", "22.05.8", (Partition("batch", True, True, 14400, 3600, None, 4, 8, ("h100",), 32, 128000, KINDS),)
)
PLACE = "/lustre/me/code/c0de"
CODE = Code(Path("/home/me/code"), "c0de", PLACE, {"train.py": CodeFile("0" * 64, size=10)}, {".env": "secret"}, "abc")


def plan(image: str | None, **fields: Any) -> Plan:
    profile = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image=image)
    return make_plan(JobSpec.build(command=("x",), code="code", **fields), profile, FACTS, "k3v9x2m4q", code=CODE)


@pytest.mark.parametrize(("fields", "place"), [({}, "/code"), ({"workdir": "/work"}, "/work")])
def test_a_container_has_it_at_its_working_directory(fields: dict[str, str], place: str) -> None:
    made = plan("/i.sqsh", **fields)
    step = made.files["script/step"].decode()
    assert f"{PLACE}:{place}:ro" in step
    assert f"--container-workdir={place}" in step
    # It is sent before the job, so it need not be there when the plan is looked at.
    assert made.required_paths == ("/i.sqsh",)


def test_without_an_image_the_job_starts_in_it() -> None:
    assert f"--chdir={PLACE}" in plan(None).files["script/step"].decode()
    with pytest.raises(SpecError, match="cannot begin both"):
        plan(None, workdir="/work")


def test_what_it_was_is_kept_with_the_job() -> None:
    about = plan("/i.sqsh").files["script/code.json"].decode()
    assert '"commit": "abc"' in about
    assert '".env": "secret"' in about
