"""Which further options of sbatch may be given."""

from __future__ import annotations

import pytest

from towline.models import sbatch_options
from towline.models.sbatch_options import check_option, read_options
from towline.models.schema import job_keys


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("--switches=1", {"switches": "1"}),
        (["switches=1@1:00", "--hold", " nice=-5 "], {"switches": "1@1:00", "hold": "", "nice": "-5"}),
        ({"switches": 1, "hold": True, "contiguous": None}, {"switches": "1", "hold": "", "contiguous": ""}),
    ],
)
def test_options_are_read_as_people_write_them(given: object, read: dict[str, str]) -> None:
    assert read_options(given) == read
    for name, value in read.items():
        check_option(name, value)


def test_no_option_has_two_verdicts() -> None:
    names: list[str] = [
        *sbatch_options.WITH_VALUE,
        *sbatch_options.WITHOUT_VALUE,
        *sbatch_options.EITHER,
        *sbatch_options.FIELDS,
        *sbatch_options.BREAKING,
    ]
    assert len(names) == len(set(names))


def test_the_fields_that_are_named_exist() -> None:
    known = {key.name for key in job_keys()}
    named = {part for field in sbatch_options.FIELDS.values() for part in field.split(" and ")}
    assert named <= known


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("output", "x", "the files of a job lie in its directory"),
        ("wrap", "true", "the batch script is Towline's"),
        ("container-image", "x", "the batch script itself would run in the container"),
        ("no-container-remap-root", "", "the batch script itself would run in the container"),
        ("gpus-per-task", "1", "every step would inherit it"),
        ("time", "1", "write it as resources.time"),
        ("swiches", "1", "did you mean switches"),
        ("xyzzy", "1", "knows no such option"),
        ("switches", "", "takes a value"),
        ("hold", "1", "takes no value"),
        ("gres", "nvme:1,gpu:2", "resources.gpus"),
        ("wckey", "a b", "#SBATCH"),
        ("Switches", "1", "not the name of an option"),
    ],
)
def test_an_option_is_refused_with_its_reason(name: str, value: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check_option(name, value)
