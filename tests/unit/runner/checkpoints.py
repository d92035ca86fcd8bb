"""Checkpoints as trainers write them, without PyTorch: the same containers with the same tables."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any


def torch_file(path: Path, content: dict[str, Any] | None = None, *, data: int = 500, program: bool = False) -> Path:
    """What `torch.save` writes: an archive without compression, with a pickle and the bytes of tensors."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content or {"state_dict": {}}, protocol=2))
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/data/0", bytes(range(256)) * (data // 256 + 1))
        if program:
            archive.writestr("archive/code/__torch__.py", "def forward(self): pass")
        archive.writestr("archive/version", "3\n")
    path.write_bytes(packed.getvalue())
    return path


def safetensors(path: Path, size: int = 64) -> Path:
    """What `safetensors` writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}
    table = json.dumps(facts).encode()
    path.write_bytes(struct.pack("<Q", len(table)) + table + bytes(size))
    return path


def trainers(path: Path, step: int) -> Path:
    """A directory of Transformers' Trainer with its shards."""
    for shard in ("model-1.safetensors", "model-2.safetensors"):
        safetensors(path / shard)
    (path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})
    )
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
        torch_file(path / name)
    (path / "trainer_state.json").write_text(json.dumps({"global_step": step, "epoch": 0.5}))
    return path


def ranks(path: Path, count: int) -> Path:
    """A directory with a file of each rank."""
    for kind in ("model", "optimizer", "extra_info"):
        for rank in range(count):
            torch_file(path / "policy" / f"{kind}_rank_{rank}.pth")
    return path
