from __future__ import annotations

from pathlib import Path

import pytest

from towline.config.files import Resolved, job_defaults, resolve
from towline.config.project import read_project, record_trust
from towline.engine.configuration import with_defaults
from towline.models.errors import ConfigError
from towline.models.spec import JobSpec

PROFILE = 'default_cluster = "mine"\n[clusters.mine]\nhosts = "login"\nroot = "/lustre/me"\npartition = "batch"\n'


class Place:
    """A configuration directory and a project beside it."""

    def __init__(self, folder: Path) -> None:
        self.config, self.project = folder / "config", folder / "project"
        self.config.mkdir()
        (self.project / "deep" / "down").mkdir(parents=True)
        (self.config / "config.toml").write_text(PROFILE)
        self.file = self.project / "towline.toml"

    def trust(self) -> None:
        record_trust(read_project(self.file), self.config)

    def env(self, **more: str) -> dict[str, str]:
        return {"TOWLINE_CONFIG_DIR": str(self.config), **more}

    def found(self, **more: str) -> Resolved:
        return resolve(env=self.env(**more), directory=self.project / "deep" / "down")

    def defaults(self, **more: str) -> dict[str, object]:
        return job_defaults(env=self.env(**more), directory=self.project / "deep" / "down")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_defaults_of_jobs_need_no_trust_and_are_found_from_below(place: Place) -> None:
    place.file.write_text('image = "ubuntu"\npartition = "gpu"\n[resources]\ngpus_per_node = 2\ntime = "1h"\n')
    spec = JobSpec.build(**with_defaults({"command": ("true",), "resources": {"time": "2h"}}, place.defaults()))
    assert (spec.image, spec.partition) == ("ubuntu", ("gpu",))
    assert (spec.resources.gpus_per_node, spec.resources.time) == (2, 7200)


def test_the_environment_wins_over_the_projects_defaults(place: Place) -> None:
    place.file.write_text('partition = "gpu"\n[resources]\ntime = "1h"\nnodes = 2\n')
    assert place.defaults(TOWLINE_PARTITION="x", TOWLINE_TIME="3h") == {"resources": {"nodes": "2"}}


@pytest.mark.parametrize(
    "text",
    [
        'cluster = "mine"\n',
        '[clusters.evil]\nhosts = "evil"\nroot = "/x"\n',
        'shell = "rm -rf x"\n',
        "command = ['x']\n",
    ],
)
def test_what_connects_or_runs_needs_trust(place: Place, text: str) -> None:
    place.file.write_text(text)
    with pytest.raises(ConfigError, match="is not trusted") as caught:
        place.found()
    assert f"towline trust {place.file}" in caught.value.fix
    place.trust()
    place.found()


@pytest.mark.parametrize("key", ["setup", "hosts", "user", "identity_file", "version", "imgae"])
def test_keys_that_are_no_jobs_are_refused_with_or_without_trust(place: Place, key: str) -> None:
    place.file.write_text(f'{key} = "x"\n')
    with pytest.raises(ConfigError, match=f"no setting '{key}'"):
        place.found()


@pytest.mark.parametrize(("key", "meant"), [("imgae", "image"), ("gpus_per_node", "resources.gpus_per_node")])
def test_a_key_that_may_have_been_meant_is_named(place: Place, key: str, meant: str) -> None:
    place.file.write_text(f'{key} = "2"\n')
    with pytest.raises(ConfigError, match=f"did you mean {meant}"):
        place.found()


def test_a_change_ends_the_trust(place: Place) -> None:
    place.file.write_text('cluster = "mine"\n')
    place.trust()
    assert place.found().profile.name == "mine"
    place.file.write_text('cluster = "mine" \n')
    with pytest.raises(ConfigError, match="is not trusted"):
        place.found()


def test_a_trusted_projects_cluster_is_known_with_its_origin(place: Place) -> None:
    place.file.write_text('cluster = "theirs"\n[clusters.theirs]\nhosts = "there"\nroot = "/lustre/t"\n')
    place.trust()
    found = place.found()
    assert (found.profile.name, found.profile.hosts) == ("theirs", ("there",))
    assert (found.origins["hosts"].source.value, str(found.origins["hosts"])) == ("project", str(place.file))


def test_flags_replace_text_by_a_command_and_add_mounts() -> None:
    defaults: dict[str, object] = {"shell": "sleep 1", "mounts": ["/data"], "env": {"A": "1", "B": "1"}}
    given = {"command": ("true",), "mounts": ("/more",), "env": {"B": "2"}}
    merged = with_defaults(given, defaults)
    assert "shell" not in merged
    assert merged["mounts"] == ["/data", "/more"]
    assert merged["env"] == {"A": "1", "B": "2"}
