"""Values of secrets: asked for by name, checked, sent beside the plan, and hidden in what this process says."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from towline.config.profile import ClusterProfile
from towline.engine import redaction
from towline.engine.cluster import AsyncCluster
from towline.engine.planning.checks import check_spec
from towline.engine.redaction import conceal, redacted, redacted_document
from towline.engine.store import Store
from towline.engine.submitting import submission
from towline.engine.submitting.secrets import take_secrets
from towline.models.errors import PlanRefused, SlurmRefused, SpecError
from towline.models.plan import Verdict
from towline.models.secrets import MAX_SECRET_BYTES, Secret, Secrets
from towline.models.site import Partition, SiteFacts
from towline.models.spec import JobSpec
from towline.remote.base import Ending, Operation, Outcome
from towline.remote.memory import InMemory

SPEC = JobSpec.build(shell='use "$A"', secrets=("A", "B"))
VALUES = {"A": "first-value", "B": b"second\xff", "C": "not asked for"}


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", set[str]())


def test_only_what_the_spec_names_is_taken() -> None:
    asked: list[str] = []

    def look_up(name: str) -> str | bytes | None:
        asked.append(name)
        return VALUES.get(name)

    for source in (VALUES, look_up, {"A": Secret("first-value"), "B": b"second\xff"}):
        taken = take_secrets(SPEC, source)
        assert {name: value.reveal() for name, value in taken.items()} == {"A": b"first-value", "B": b"second\xff"}
    assert asked == ["A", "B"]


def nothing(_name: str) -> None:
    return None


@pytest.mark.parametrize("given", [None, {}, {"A": "x"}, nothing])
def test_a_secret_without_a_value_is_named(given: Secrets | None) -> None:
    with pytest.raises(SpecError, match=r"no value: .*B") as caught:
        take_secrets(SPEC, given)
    assert "--secret" in caught.value.fix


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "is empty"),
        ("good\0bad", "NUL"),
        ("good" + "x" * MAX_SECRET_BYTES, "65540 bytes"),
        ("good\ud800", "UTF-8"),
        (["good"], "type list"),
    ],
)
def test_a_value_that_no_variable_can_carry_is_refused_and_not_shown(value: Any, why: str) -> None:
    with pytest.raises(SpecError, match="secret A") as caught:
        take_secrets(SPEC, {**VALUES, "A": value})
    assert why in caught.value.why
    assert "good" not in str(caught.value)


def test_all_values_together_have_a_limit() -> None:
    names = tuple(f"S{number}" for number in range(9))
    with pytest.raises(SpecError, match="too large"):
        take_secrets(JobSpec.build(shell="true", secrets=names), lambda _: "x" * MAX_SECRET_BYTES)


@pytest.mark.parametrize(
    "fields",
    [
        {"shell": "curl -H 'Key: first-value'"},
        {"command": ["curl", "-HKey: first-value"]},
        {"env": {"OTHER": "first-value"}},
        {"comment": "with first-value"},
    ],
)
def test_a_value_in_plain_sight_is_refused(fields: dict[str, object]) -> None:
    spec = JobSpec.build(**{"shell": "" if "command" in fields else "true", **fields}, secrets=("A",))
    with pytest.raises(PlanRefused, match="secret A") as caught:
        take_secrets(spec, VALUES)
    assert "first-value" not in str(caught.value)


@pytest.mark.parametrize("where", [{"env": {"A": "x"}}, {"secrets": ("A", "A")}, {"secrets": ("SLURM_A",)}])
def test_names_that_cannot_be_right(where: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=r"secrets|SLURM_A"):
        JobSpec.build(**{"shell": "true", "secrets": ("A",), **where})


def test_a_secret_shows_itself_to_nobody() -> None:
    secret = Secret("first-value")
    assert "first" not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)


# --- What is sent ---


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    batch = Partition("batch", True, True, 3600, nodes=4)
    opened.save_facts("lab", SiteFacts("lab", "22.05.8", (batch,), 10, time.time()))
    yield opened
    opened.close()


def test_values_go_beside_the_plan_into_one_file(store: Store, tmp_path: Path) -> None:
    remote = InMemory(lambda _: Outcome(Ending.DONE, 0, b"came=submitted\nslurm=41\n"))
    profile = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh")
    cluster = AsyncCluster(profile, remote=remote, store=store)

    async def plan_and_submit() -> None:
        plan = await cluster.plan(SPEC)
        assert "files/secrets" not in plan.files
        await cluster.submit(SPEC, plan, secrets=VALUES)

    asyncio.run(plan_and_submit())
    sent = [operation for operation in remote.operations if operation.name == "submit"][-1]
    assert sent.files["files/secrets"] == b"export A='first-value'\nexport B='second\xff'\n"
    others = {**sent.files, "files/secrets": b""}
    shown = repr(sent) + sent.script + "".join(sent.args)
    assert "first-value" not in shown
    assert not [name for name, content in others.items() if isinstance(content, bytes) and b"first-value" in content]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"first-value" in path.read_bytes()]


def test_values_that_are_left_when_a_job_has_ended_are_taken_away(store: Store) -> None:
    answers = {
        "submit": b"came=submitted\nslurm=41\n",
        "poll": b"@query 0 squeue - 41\n>41|CANCELLED|1|2|3|1|node1|None\n@job %(id)s 1 - yes no 1 yes no\n@end\n",
        "forget": b"kept /lustre/me/jobs/%(id)s/secrets\n",
    }
    known: list[str] = []

    def answer(operation: Operation) -> Outcome:
        job_id = known[0] if known else ""
        return Outcome(Ending.DONE, 0, answers[operation.name].replace(b"%(id)s", job_id.encode()))

    remote = InMemory(answer)
    profile = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh")

    async def submit_and_look() -> str:
        cluster = AsyncCluster(profile, remote=remote, store=store)
        job = await cluster.submit(SPEC, secrets=VALUES)
        known.append(job.id)
        return (await job.status()).note

    note = asyncio.run(submit_and_look())
    assert [operation.name for operation in remote.operations][-2:] == ["poll", "forget"]
    assert remote.operations[-1].args == (f"/lustre/me/jobs/{known[0]}",)
    assert f"/lustre/me/jobs/{known[0]}/secrets could not be removed" in note


@pytest.mark.parametrize(("first", "calls"), [(49, ["submit", "submit", "forget"]), (48, ["submit"])])
def test_a_job_that_was_refused_in_the_end_leaves_no_values(
    store: Store, monkeypatch: pytest.MonkeyPatch, first: int, calls: list[str]
) -> None:
    """A call whose end is not known may have placed them; a call that is refused takes back what it placed."""
    monkeypatch.setattr(submission, "_FIRST_PAUSE", 0.01)
    refused = Outcome(Ending.DONE, 48, b"", b"sbatch: error: Batch job submission failed: Invalid qos specification")
    answers = [Outcome(Ending.DONE, 49, b"", b"sbatch did not say")] if first == 49 else []
    answers += [refused, Outcome(Ending.DONE, 0)]
    remote = InMemory(lambda _: answers.pop(0))
    profile = ClusterProfile(name="lab", hosts=("login",), root="/lustre/me", image="/i.sqsh")
    with pytest.raises(SlurmRefused):
        asyncio.run(AsyncCluster(profile, remote=remote, store=store).submit(SPEC, secrets=VALUES))
    assert [operation.name for operation in remote.operations] == calls


# --- What is shown ---


def test_known_values_are_hidden_and_lines_of_long_ones_too() -> None:
    conceal(["hunter2", "-----BEGIN-----\nMIIEvQIBADANBgkq\n-----END-----", "no"])
    assert redacted("login hunter2 failed, no") == "login *** failed, no"
    assert redacted("line MIIEvQIBADANBgkq here") == "line *** here"
    assert json.dumps(redacted_document({"a": ["hunter2", {"b": "x hunter2"}], "n": 1})) == (
        '{"a": ["***", {"b": "x ***"}], "n": 1}'
    )


@pytest.mark.parametrize(
    "token",
    [
        "nvapi-" + "Ab1_-" * 13,
        "hf_" + "aB3" * 12,
        "ghp_" + "a" * 36,
        "glpat-" + "a1B2" * 5,
        "sk-proj-" + "a1B2" * 10,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
    ],
)
def test_tokens_are_known_by_their_shape_and_refused_in_plain_sight(token: str) -> None:
    assert redacted(f"TOKEN={token} next") == "TOKEN=*** next"
    facts = SiteFacts("lab", "22.05.8", (Partition("batch", True, True, 3600, nodes=4),))
    for fields in ({"env": {"TOKEN": token}, "shell": "true"}, {"command": ["curl", f"-HKey: {token}"]}):
        spec = JobSpec.build(image="/i.sqsh", **fields)
        (found,) = [check for check in check_spec(spec, facts, ()) if check.name == "secrets"]
        assert found.verdict is Verdict.FAILS
        assert token not in found.evidence
        assert "--secret" in found.fix


def test_passwords_in_addresses_are_hidden_and_ordinary_words_are_not() -> None:
    assert redacted("pull https://me:pass@host/x") == "pull https://me:***@host/x"
    ordinary = "hf_transformers_cache sk-learn eyJ.a.b nvapi-docs user@host:22 http://host:80/a@b sha256:" + "a" * 64
    assert redacted(ordinary) == ordinary


def test_a_spec_without_secrets_asks_for_nothing() -> None:
    assert take_secrets(SPEC.model_copy(update={"secrets": ()}), None) == {}
