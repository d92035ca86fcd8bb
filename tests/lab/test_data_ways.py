"""What brings data where a profile says it: its Python, a site's program, and a cache of any name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.data_site import GPU, KEYS, Site, own_site
from tests.lab.faulty import as_alice
from towline.lab import Lab
from towline.lab.process import until

NGC = """#!/bin/sh
# Stands in for NVIDIA's program: it wants the key, and makes a folder for the model and its version.
[ "$*" = "registry model download-version nvidia/tao/peoplenet:v2.6 --dest $6" ] || { echo "usage: $*"; exit 2; }
[ "$NGC_CLI_API_KEY" = nvapi-right ] || { echo "Invalid API key" >&2; exit 1; }
mkdir -p "$6/peoplenet_vv2.6" && echo weights >"$6/peoplenet_vv2.6/model.hdf5"
"""


@pytest.fixture
def site(lab: Lab, tmp_path: Path) -> Iterator[Site]:
    with own_site(lab, tmp_path) as own:
        yield own


def test_a_python_that_is_not_there_is_refused_before_anything_is_made(site: Site) -> None:
    uri = site.store.put("set/a", b"a")
    site.towline.environment["TOWLINE_STAGING_PYTHON"] = "/no/such/python"
    asked = site.towline("run", *KEYS, "--input", f"/a={uri}", *GPU, "--", "true")
    assert asked.code == 65
    assert "`staging_python` names /no/such/python" in asked.err
    sends = site.towline("run", *KEYS, "--output", f"a=s3://{site.store.bucket}/out", *GPU, "--", "true")
    assert sends.code == 65
    assert "/no/such/python" in sends.err
    assert site.jobs() == []
    # Login hosts may not see what nodes have; then the job that stages tells it.
    site.towline.environment["TOWLINE_UNSEEN"] = "/no/such"
    staged = site.towline("run", *KEYS, "--input", f"/a={uri}", *GPU, "--", "true")
    assert staged.code != 0
    assert "`staging_python` names /no/such/python" in staged.err, staged
    assert site.on("batch") == []


def test_a_model_of_ngc_is_there_when_the_job_begins(site: Site) -> None:
    tools = f"{site.place}/tools"
    as_alice(site.lab, f"mkdir -p {tools} && cat >{tools}/ngc <<'END'\n{NGC}END\nchmod 755 {tools}/ngc")
    words = ("run", "--secret", "NGC_KEY", "--input", "/model=ngc://nvidia/tao/peoplenet:v2.6", *GPU)
    lacking = site.towline(*words, "--", "true")
    assert lacking.code != 0
    site.towline.environment |= {"TOWLINE_SETUP": f"export PATH=$PATH:{tools}", "NGC_KEY": "nvapi-wrong"}
    wrong = site.towline(*words, "--", "true")
    assert "Invalid API key" in wrong.err, wrong
    assert site.on("batch") == []
    site.towline.environment["NGC_KEY"] = "nvapi-right"
    done = site.towline(*words, "--", "sh", "-c", "cd /model && find . -type f | xargs grep .")
    assert (done.code, done.out) == (0, "weights\n"), done
    prepared, (allocated,) = site.on("cpu"), site.on("batch")
    assert all(end <= allocated[0] for _, end in prepared)
    # A version of NGC's does not change: what is there is taken.
    assert site.towline(*words, "--", "test", "-d", "/model").code == 0
    assert len(site.on("cpu")) == len(prepared)
    assert as_alice(site.lab, f"grep -rlF nvapi-right {site.place}/data /lustre/alice/towline/jobs || true") == ""


def test_a_cache_may_have_any_name_that_slurm_takes(site: Site) -> None:
    def users() -> list[list[str]]:
        return [image["jobs"] for image in site.towline("images", "ls", "--json").json["images"]]

    odd = f"{site.place}/a&b[1]*(c)|~^+=@"
    site.towline.environment |= {"TOWLINE_DATA_CACHE": f"{odd}/data", "TOWLINE_IMAGE_CACHE": f"{odd}/images"}
    uri = site.store.put("one.bin", b"one\n")
    words = ("run", *KEYS, "--image", "registry.lab:5000/demo:latest", "--input", f"/one.bin={uri}", *GPU)
    done = site.towline(*words, "--", "cat", "/one.bin")
    assert (done.code, done.out) == (0, "one\n"), done
    again = site.towline(*words, "--", "cat", "/one.bin")
    assert (again.code, again.out) == (0, "one\n"), again
    assert len(site.on("cpu")) == 2
    until(lambda: users() == [[]], 30, "the end of both jobs")
    removed = site.towline("images", "prune", "--unused", "0", "--json").json["removed"]
    assert [each["outcome"] for each in removed] == ["removed"]
