from __future__ import annotations

from typing import Any

import pytest

from towline.models.errors import SpecError
from towline.models.spec import JobSpec


@pytest.mark.parametrize(
    "resources",
    [{"gpus": 4}, {"gpus_per_node": 8}, {"gpus_per_node": 8, "tasks_per_node": 8}, {"gpus": 4, "tasks_per_node": 1}],
)
def test_one_task_for_each_gpu_needs_gpus_only(resources: dict[str, Any]) -> None:
    assert JobSpec.build(command=["true"], launch="gpu", resources=resources).launch == "gpu"


@pytest.mark.parametrize(
    ("resources", "why"),
    [({}, "needs GPUs"), ({"gpus_per_node": 8, "tasks_per_node": 2}, "leave tasks_per_node out")],
)
def test_one_task_for_each_gpu_and_something_else(resources: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        JobSpec.build(command=["true"], launch="gpu", resources=resources)


def test_shell_text_may_hold_what_it_works_with_and_words_may_not() -> None:
    assert JobSpec.build(shell="x" * (4 << 20)).shell
    with pytest.raises(SpecError, match="the command is longer than 1 MiB"):
        JobSpec.build(command=["echo", "x" * (1 << 20)])
    with pytest.raises(SpecError, match="the shell text is longer than 32 MiB"):
        JobSpec.build(shell="x" * ((32 << 20) + 1))
