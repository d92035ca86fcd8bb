"""From a spec to the script that is sent: whatever stands in a spec, sbatch reads what is meant and no more."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.slurm.test_batch import read_directives
from towline.config.profile import ClusterProfile
from towline.engine.planning.beforehand import Staged
from towline.engine.planning.plans import make_plan
from towline.models.errors import SpecError
from towline.models.plan import PlannedInput
from towline.models.site import NodeKind, Partition, SiteFacts
from towline.models.spec import JobSpec

JOB = "k3v9x2m4q"
KINDS = (NodeKind(4, 32, 128000, (("h100", 8),), ("rack1",)),)
FACTS = SiteFacts(
    "lab", "22.05.8", (Partition("batch", True, True, 14400, 3600, None, 4, 8, ("h100",), 32, 128000, KINDS),)
)
PROFILE = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh")

nasty = st.text(st.sampled_from("ab1 \n\t\r#\"'\\$`;&|()=,:@%-/é\x00\x7f\udcff"), max_size=12) | st.sampled_from(
    ["a\n#SBATCH --uid=0", "x #y", "--wrap=x", '{"a": 1}', "#SBATCH"]
)
PLAIN: dict[str, Any] = {
    "name": "train",
    "account": "research",
    "qos": "high",
    "reservation": "friday",
    "constraint": "rack1&nvme",
    "nodelist": "node[1-2]",
    "exclude": "node3",
    "partition": ["batch", "low"],
    "comment": "a 'b' #c",
    "begin": "now+1hour",
    "deadline": "2026-03-01",
    "env": {"A": "1"},
    "labels": {"project": "moon"},
    "mail": {"user": "me@example.org"},
    "resources": {"gpus": 16, "licenses": "matlab:2"},
    "sbatch": {"switches": "1", "hold": "", "gres": "nvme:1"},
}
ALLOWED = {
    *(
        "nodes",
        "ntasks-per-node",
        "gres",
        "cpus-per-task",
        "wait-all-nodes",
        "exclusive",
        "licenses",
        "time",
        "job-name",
    ),
    *(
        "account",
        "partition",
        "qos",
        "reservation",
        "constraint",
        "nodelist",
        "exclude",
        "comment",
        "begin",
        "deadline",
    ),
    *("chdir", "output", "error", "open-mode", "mail-user", "mail-type", "requeue", "export"),
}


@st.composite
def described(draw: st.DrawFn) -> dict[str, Any]:
    """Some plain fields, and one that may hold anything."""
    fields = {key: PLAIN[key] for key in draw(st.sets(st.sampled_from(sorted(PLAIN))))}
    name, text = draw(st.sampled_from(sorted(PLAIN))), draw(nasty)
    plain = PLAIN[name]
    if isinstance(plain, dict):
        table = cast("dict[str, Any]", plain)
        value: Any = {**table, draw(nasty | st.sampled_from(sorted(table))): text}
    else:
        value = [text] if isinstance(plain, list) else text
    return {"command": [draw(nasty), "x"], **fields, name: value}


@given(fields=described())
def test_a_spec_is_refused_or_says_only_what_it_means(fields: dict[str, Any]) -> None:
    try:
        spec = JobSpec.build(**fields)
        plan = make_plan(spec, PROFILE, FACTS, JOB)
    except SpecError:
        return
    read = [option.removeprefix("--").partition("=") for option in read_directives(plan.script)]
    found = {name: value for name, _, value in read}
    assert len(found) == len(read)
    assert set(found) <= ALLOWED | set(spec.sbatch)
    assert found["output"] == f"/lustre/me/jobs/{JOB}/attempts/1/main.out"
    assert (found["export"], found["open-mode"]) == ("NONE", "append")
    for name in ("account", "qos", "reservation", "nodelist", "exclude", "comment", "begin", "deadline"):
        assert found.get(name, "") == (getattr(plan.spec, name) or "")
    assert json.loads(plan.files["job.json"])["spec"]["labels"] == fields.get("labels", {})
    again = JobSpec.build(**json.loads(plan.files["job.json"])["spec"])
    assert again == plan.spec


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["true"], "resources": {"gpus": 12, "memory_per_gpu": "1G"}, "comment": '{"a":1}'},
        {"command": ["true"], "array": "0-9%2", "arguments": [["x y", "'"]] * 10},
        {
            "roles": [
                {"name": "a", "shell": "act", "on": "b", "tasks_per_node": 2},
                {"name": "b", "shell": "true", "nodes": 2, "resources": {"gpus_per_node": 1}},
                {"name": "c", "shell": "true", "constraint": "cpu"},
            ],
            "resources": {"time": "1h"},
        },
    ],
)
def test_what_is_sent_can_be_planned_again_without_a_change(fields: dict[str, Any]) -> None:
    spec = JobSpec.build(**fields)
    once = make_plan(spec, PROFILE, FACTS, JOB)
    assert JobSpec.build(**json.loads(once.files["job.json"])["spec"]) == once.spec
    assert make_plan(once.spec, PROFILE, FACTS, JOB).files == once.files


def test_the_gpus_of_all_components_are_counted() -> None:
    roles = [
        {"name": "policy", "command": ["a"], "resources": {"gpus_per_node": 4}},
        {"name": "rollout", "command": ["b"], "nodes": 2, "resources": {"gpus_per_node": 1}},
    ]
    plan = make_plan(JobSpec.build(roles=roles, resources={"time": "30m"}), PROFILE, FACTS, JOB)
    assert (plan.nodes, plan.gpus, plan.gpu_hours) == (3, 6, 3)


@pytest.mark.parametrize(("image", "place"), [("/i.sqsh", "/data/train"), (None, "/lustre/me/staged/x/data")])
def test_the_command_is_told_where_its_inputs_are(image: str | None, place: str) -> None:
    """Without an image nothing can be mounted, and only the copy's own path helps."""
    spec = JobSpec(command=("true",), inputs={"/data/train": "s3://sets/a"})
    staged = Staged((PlannedInput("s3://sets/a", "/data/train", "/lustre/me/staged/x/data"),))
    profile = PROFILE.model_copy(update={"image": image, "runtime": "auto" if image else "none"})
    plan = make_plan(spec, profile, FACTS, JOB, staged=staged)
    assert f"export TOWLINE_INPUT_DATA_TRAIN='{place}'\n" in plan.files["script/env"].decode()
    assert plan.files["script/inputs"] == b"s3://sets/a /lustre/me/staged/x/data\n"
    assert plan.spec.inputs == spec.inputs


def test_a_variable_in_a_value_of_the_environment_is_noted_for_nobody_fills_it_in() -> None:
    spec = JobSpec.build(command=["train"], env={"OUT": "$TOWLINE_RESULTS_DIR/x", "PRICE": "5$", "N": "1"})
    plan = make_plan(spec, PROFILE, FACTS, JOB)
    (note,) = [each for each in plan.notes if "taken as they are" in each]
    assert "OUT" in note
    assert "$TOWLINE_RESULTS_DIR" in note
    assert "--shell 'OUT=" in note
    assert not plan.failures
