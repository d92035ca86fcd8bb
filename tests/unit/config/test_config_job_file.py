"""A job's description in a file: the same values whatever the format, and errors that name the line."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline import read_spec
from towline.config.job_file import parse_job_file, read_job_file
from towline.engine.configuration import build_spec
from towline.models.errors import NotFound, SpecError, TowlineError
from towline.models.spec import JobSpec

YAML = """\
# what a person writes
version: 1
image: nvcr.io/nvidia/pytorch:24.07-py3
command: [python, train.py, --lr, 1e-4, --layers, 012, --flag, yes]
name: tune
resources:
  gpus: 16
  time: 1:30:00
  memory: 64G
  exclusive: yes
  licenses: matlab:2
partition: [batch, low]
account: ~
env: {DEBUG: on, EMPTY: "", RATIO: 0.10, WHEN: 2026-01-01}
mounts:
  - /datasets:/data:ro
  - {source: /scratch, target: /s}
grace: 5m
labels:
  project: moon
  number: 7
mail: {user: me@example.org, types: ALL}
resume: {checkpoints: "*.pt", args: [--resume]}
sbatch: {switches: 2, contiguous: }
"""
TOML = """\
version = 1
image = "nvcr.io/nvidia/pytorch:24.07-py3"
command = ["python", "train.py", "--lr", "1e-4", "--layers", "012", "--flag", "yes"]
name = "tune"
partition = "batch,low"
env = {DEBUG = "on", EMPTY = "", RATIO = "0.10", WHEN = "2026-01-01"}
mounts = ["/datasets:/data:ro", {source = "/scratch", target = "/s"}]
grace = "5m"
sbatch = ["switches=2", "--contiguous"]

[resources]
gpus = 16
time = "1:30:00"
memory = "64G"
exclusive = true
licenses = "matlab:2"

[labels]
project = "moon"
number = 7

[mail]
user = "me@example.org"
types = "ALL"

[resume]
checkpoints = "*.pt"
args = ["--resume"]
"""


def spec_of(file: str, text: str, **fields: Any) -> JobSpec:
    return build_spec(fields, parse_job_file(file, text.encode()))


def test_every_format_describes_the_same_job() -> None:
    spec = spec_of("job.yaml", YAML)
    assert spec.command[3:] == ("1e-4", "--layers", "012", "--flag", "yes")
    assert spec.env == {"DEBUG": "on", "EMPTY": "", "RATIO": "0.10", "WHEN": "2026-01-01"}
    assert (spec.resources.gpus, spec.resources.time, spec.resources.memory) == (16, 5400, 65536)
    assert (spec.resources.exclusive, spec.account, spec.grace) == (True, None, 300)
    assert spec.sbatch == {"switches": "2", "contiguous": ""}
    assert spec_of("job.toml", TOML) == spec
    assert spec_of("job.json", spec.model_dump_json()) == spec
    assert JobSpec.build(**json.loads(spec.model_dump_json())) == spec


def test_flags_win_over_the_file_key_by_key() -> None:
    spec = spec_of("job.yaml", YAML, name="other", resources={"gpus_per_node": 2}, env={"DEBUG": "off"})
    assert (spec.name, spec.resources.gpus, spec.resources.gpus_per_node) == ("other", None, 2)
    assert spec.resources.time == 5400
    assert spec.env["DEBUG"] == "off"
    assert spec.env["RATIO"] == "0.10"
    assert spec_of("job.yaml", YAML, shell="echo", resume={"args": []}).command == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "command: [ls]\nresources:\n  gpu_per_node: 8\n",
            "job.yaml, line 3: resources.gpu_per_node: there is no such",
        ),
        ("command: [ls]\nresources:\n  gpu_per_node: 8\n", "did you mean resources.gpus_per_node"),
        ("command: [ls]\ngpus: 8\n", "job.yaml, line 2: gpus: there is no such setting; did you mean resources.gpus?"),
        ("command: [ls]\npartitions: a\n", "did you mean partition?"),
        (
            "command: [ls]\nmail:\n  usr: me\n",
            "job.yaml, line 3: mail.usr: there is no such setting; did you mean mail.user",
        ),
        ("roles:\n- {name: a, comand: [ls]}\n", "did you mean roles.0.command?"),
        ("roles:\n- {name: a, ready_prt: 80}\n", "did you mean roles.0.ready_port"),
        (
            "roles:\n- {name: a, time: 1h}\n",
            "roles.0.time: there is no such setting; did you mean roles.0.resources",
        ),
        (
            "command: [ls]\nmounts:\n- {sorce: /a}\n",
            "mounts.0.sorce: there is no such setting; did you mean mounts.0.",
        ),
        ("command: [ls]\nmounts:\n- {source: /a}\n", "mounts.0.target: it is missing"),
        ("command: python train.py\n", "line 1: command: a list is wanted here"),
        ("command: [ls]\nenv: [A=1]\n", "line 2: env: a table of names and values is wanted here"),
        ("command: [ls]\nresources:\n", "line 2: resources: a table of settings is wanted here"),
        ("command: [ls]\nresources: {time: 90}\n", "job.yaml, line 2: resources.time: 90 could be minutes or seconds"),
        ("command: [ls]\nresources:\n  nodes: two\n", "line 3: resources.nodes"),
        ("command: [ls]\nmounts:\n- /a\n- b\n", "line 2: mounts.1"),
        ("command: [ls]\nresources:\n  gpus: 8\n  gpus_per_node: 8\n", "line 2: resources: gpus and gpus_per_node"),
        ("command: [ls]\nsbatch:\n  output: x\n", "sbatch.output cannot be given"),
        ("command: [ls]\ncommand: [ls]\n", "Line 2: command is there twice"),
        ("command: [ls\n", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("- ls\n", "no table of settings"),
        ("command: !!python/object/apply:os.system [ls]\n", "Line 1: tags such as"),
        ("command: !mine [ls]\n", "Line 1: tags such as"),
        ("a: &a [*a]\n", "holds itself"),
        ("? [a]\n: b\n", "a key must be a word"),
        ("env: {A: [1]}\ncommand: [ls]\n", "line 1: env.A"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of("job.yaml", text)
    assert says in caught.value.why


def test_aliases_cannot_fill_the_memory() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefg", "bcdefgh", strict=True)]
    with pytest.raises(SpecError, match="does not describe a job"):
        parse_job_file("job.yaml", "\n".join(lines).encode())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("job.toml", "[resources]\ngpu = 1\n", "job.toml, line 2: resources.gpu: there is no such"),
        ("job.toml", "resources = {time = 90}\n", "job.toml, line 1: resources.time: 90 could be"),
        ("job.toml", "a = \n", "not valid TOML"),
        ("job.json", "{", "not valid JSON"),
        ("job.json", "[" * 100_000, "too deep"),
        ("job.toml", f"a = {'[' * 100_000}", "too deep"),
        ("job.yaml", "[" * 100_000, "too deep"),
        ("job.json", "[]", "holds no object"),
        ("job.json", '{"nodes": 1}', "job.json: nodes: there is no such setting; did you mean resources.nodes"),
        ("job.yaml", "\xff", "line 1"),
    ],
)
def test_other_formats_name_what_they_know(name: str, text: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec_of(name, text, command=["ls"])
    assert says in caught.value.why or "\xff" in text


def test_a_value_of_a_flag_is_not_blamed_on_the_file() -> None:
    with pytest.raises(SpecError) as caught:
        spec_of("job.yaml", YAML, resources={"nodes": 0})
    assert caught.value.why.startswith("resources.nodes: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_job_file(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        read_job_file(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: \xe9\n")
    with pytest.raises(SpecError, match="cannot be read"):
        read_job_file(tmp_path / "latin.yaml")
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfcommand: [ls]\r\n")
    assert build_spec({}, read_job_file(tmp_path / "bom.yaml")).command == ("ls",)


def test_python_reads_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(YAML)
    assert read_spec(tmp_path / "job.yaml", name="other").name == "other"
    assert read_spec(str(tmp_path / "job.yaml")) == spec_of("job.yaml", YAML)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.sampled_from(["a.yaml", "a.toml", "a.json"]))
def test_any_bytes_are_a_job_or_an_error_for_people(data: bytes, name: str) -> None:
    with contextlib.suppress(TowlineError):
        build_spec({}, parse_job_file(name, data))
