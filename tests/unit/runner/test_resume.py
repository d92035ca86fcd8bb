"""Going on: the furthest checkpoint that is whole, in the keys that wait for one."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.runner.checkpoints import ranks, safetensors, torch_file, trainers
from towline.runner.resume import newest, resume
from towline.runner.wholeness import flaw_of

KEY = "resume_training_checkpoint_path"


def test_empty_keys_get_it_wherever_they_are_and_no_others(tmp_path: Path) -> None:
    path = str(torch_file(tmp_path / "epoch_1.pth"))
    specs: dict[str, Any] = {
        "train": {KEY: "", "other": ""},
        "stages": [{KEY: None}, {KEY: "/chosen.pth"}, {"deep": [{KEY: ""}]}],
        KEY: None,
    }
    found = resume(specs, [str(tmp_path)], {})
    assert found == {f"train.{KEY}": path, f"stages[0].{KEY}": path, f"stages[2].deep[0].{KEY}": path, KEY: path}
    assert specs["train"][KEY] == ""


@pytest.mark.parametrize("word", ["0", "false", "No", "off"])
def test_it_can_be_switched_off(tmp_path: Path, word: str) -> None:
    torch_file(tmp_path / "epoch_1.pth")
    assert resume({KEY: ""}, [str(tmp_path)], {"TAO_AUTO_RESUME": word}) == {}
    assert resume({KEY: ""}, [str(tmp_path)], {"TAO_AUTO_RESUME": "1"}) != {}


def test_without_a_key_or_a_checkpoint_nothing_changes(tmp_path: Path) -> None:
    assert resume({KEY: ""}, [str(tmp_path), str(tmp_path / "nothing")], {}) == {}
    torch_file(tmp_path / "epoch_1.pth")
    assert resume({"train": {"epochs": 1}}, [str(tmp_path)], {}) == {}


ORDERS: dict[str, tuple[list[tuple[str, dict[str, Any]]], str]] = {
    "the step, not the time": (
        [("model_step_900.pth", {}), ("model_step_1000.pth", {}), ("model_step_99.pth", {})],
        "model_step_1000.pth",
    ),
    "the epoch": ([("model_epoch_010.pth", {}), ("model_epoch_009.pth", {})], "model_epoch_010.pth"),
    "epoch and step": ([("epoch=1-step=20.ckpt", {}), ("epoch=0-step=10.ckpt", {})], "epoch=1-step=20.ckpt"),
    "what the last one says of itself": (
        [("last.ckpt", {"epoch": 9, "global_step": 900}), ("epoch=2-step=300.ckpt", {"epoch": 2, "global_step": 300})],
        "last.ckpt",
    ),
    "a name that lies": (
        [("a_step_5.ckpt", {"global_step": 50}), ("b_step_9.ckpt", {"global_step": 9})],
        "a_step_5.ckpt",
    ),
    "meta of another trainer": (
        [("x.pth", {"meta": {"epoch": 3, "iter": 30}}), ("y.pth", {"meta": {"epoch": 2, "iter": 20}})],
        "x.pth",
    ),
    "one that tells nothing comes last": ([("model.pth", {}), ("step_1.pth", {})], "step_1.pth"),
    "no step in a text": ([("x.pth", {"global_step": "7", "n": 99}), ("step_1.pth", {})], "step_1.pth"),
    "directories, too": ([("model_step_9.pth", {}), ("checkpoint-10/weights.pt", {})], "checkpoint-10"),
    "not what the job was given": (
        [("inputs/step_9.pth", {}), ("ptm/step_8.pth", {}), ("step_1.pth", {})],
        "step_1.pth",
    ),
    "not what was being written": (
        [("tmp-checkpoint-9/x.pt", {}), (".hidden/step_9.pth", {}), ("step_1.pth", {})],
        "step_1.pth",
    ),
    "no piece alone": ([("optimizer_step_9.pt", {}), ("rng_state_9.pth", {}), ("step_1.pth", {})], "step_1.pth"),
}


@pytest.mark.parametrize(("files", "wanted"), ORDERS.values(), ids=ORDERS.keys())
@pytest.mark.parametrize("turned", [False, True])
def test_which_one_is_the_furthest(
    tmp_path: Path, files: list[tuple[str, dict[str, Any]]], wanted: str, turned: bool
) -> None:
    for number, (name, content) in enumerate(reversed(files) if turned else files):
        torch_file(tmp_path / name, content)
        os.utime(tmp_path / name, (number, number))
    assert newest([str(tmp_path)]) == str(tmp_path / wanted)


def test_a_directory_with_a_trainers_state_goes_before_weights_of_the_same_step(tmp_path: Path) -> None:
    ranks(tmp_path / "checkpoints" / "step_7", 2)
    safetensors(tmp_path / "safetensors" / "step_7" / "model.safetensors")
    assert newest([str(tmp_path)]) == str(tmp_path / "checkpoints" / "step_7")


def test_a_link_is_not_another_checkpoint(tmp_path: Path) -> None:
    torch_file(tmp_path / "epoch_2.pth")
    (tmp_path / "latest_epoch_9.pth").symlink_to("epoch_2.pth")
    assert newest([str(tmp_path)]) == str(tmp_path / "epoch_2.pth")


WRITERS: list[Callable[[Path], Path]] = [
    lambda folder: torch_file(folder / "step_2.pth"),
    lambda folder: torch_file(folder / "step_2.pth.tar"),
    lambda folder: safetensors(folder / "step_2.safetensors"),
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_that_is_cut_off_anywhere_is_passed_over(
    tmp_path: Path, write: Callable[[Path], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    older = torch_file(tmp_path / "step_1.pth")
    path = write(tmp_path)
    assert newest([str(tmp_path)]) == str(path)
    content = path.read_bytes()
    for end in (0, 1, 5, 9, 40, len(content) // 2, len(content) - 30, len(content) - 1):
        path.write_bytes(content[:end])
        assert newest([str(tmp_path)]) == str(older), end
        assert f"not going on from {path}: " in capsys.readouterr().err


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_beginning_of_a_checkpoint_is_whole(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = data.draw(st.sampled_from(WRITERS))(Path(folder))
        content = path.read_bytes()
        assert flaw_of(str(path)) == ""
        end = data.draw(st.integers(0, len(content) - 1))
        path.write_bytes(content[:end])
        assert flaw_of(str(path))
        path.write_bytes(content[:end] + bytes(len(content) - end))  # what a node that crashed has not written
        assert path.suffix == ".safetensors" or not content[end:].strip(b"\0") or flaw_of(str(path))


OTHERS: dict[str, bytes] = {
    "pickle": pickle.dumps({"epoch": 1}, protocol=2),
    "empty": b"",
    "text": b"epoch 1",
}


@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS.keys())
def test_what_cannot_be_seen_to_be_whole_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "step_9.pth").write_bytes(content)
    assert newest([str(tmp_path)]) == ""


def test_a_program_is_no_checkpoint(tmp_path: Path) -> None:
    assert "TorchScript" in flaw_of(str(torch_file(tmp_path / "model.pt", program=True)))


TORN: dict[str, Callable[[Path], object]] = {
    "a shard is missing": lambda path: (path / "model-2.safetensors").unlink(),
    "a shard is cut off": lambda path: os.truncate(path / "model-1.safetensors", 100),
    "its optimizer is cut off": lambda path: os.truncate(path / "optimizer.pt", 300),
    "its state is missing": lambda path: (path / "trainer_state.json").unlink(),
    "the index is cut off": lambda path: os.truncate(path / "model.safetensors.index.json", 20),
    "something was being written": lambda path: (path / "extra.pt.tmp").touch(),
    "nothing is in it": lambda path: [each.unlink() for each in path.iterdir()],
}


@pytest.mark.parametrize("tear", TORN.values(), ids=TORN.keys())
def test_a_directory_is_whole_with_all_of_its_parts(tmp_path: Path, tear: Callable[[Path], object]) -> None:
    older = trainers(tmp_path / "checkpoint-100", 100)
    path = trainers(tmp_path / "checkpoint-200", 200)
    assert newest([str(tmp_path)]) == str(path)
    tear(path)
    assert newest([str(tmp_path)]) == str(older)


def test_every_rank_has_to_have_written(tmp_path: Path) -> None:
    path = ranks(tmp_path / "step_20", 4)
    (path / "policy" / "extra_info_rank_1.pth").unlink()
    assert "extra_info of rank 1 is missing" in flaw_of(str(path))
    for number in (2, 3):
        (path / "policy" / f"extra_info_rank_{number}.pth").unlink()
    assert flaw_of(str(path)) == ""  # the first rank alone writes some
    (path / "policy" / "model_rank_3.pth").unlink()
    assert "model of rank 3 is missing" in flaw_of(str(path))


def test_shards_of_deepspeed_are_no_ranks_that_lack(tmp_path: Path) -> None:
    path = tmp_path / "global_step500"
    torch_file(path / "mp_rank_00_model_states.pt")
    for rank in range(4):
        torch_file(path / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    assert newest([str(tmp_path)]) == str(path)


def test_a_distributed_checkpoint_has_its_table(tmp_path: Path) -> None:
    path = tmp_path / "step_3"
    path.mkdir()
    for rank in range(2):
        (path / f"__{rank}_0.distcp").write_bytes(b"tensors")
    assert ".metadata is missing" in flaw_of(str(path))
    (path / ".metadata").write_bytes(b"table")
    assert newest([str(tmp_path)]) == str(path)
    (path / "__1_0.distcp").write_bytes(b"")
    assert newest([str(tmp_path)]) == ""
