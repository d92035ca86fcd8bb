from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from towline.config.files import Resolved, resolve
from towline.config.tao import VARIABLES, parse_env_file, read_tao
from towline.models.errors import ConfigError

Find = Callable[..., Resolved]
NEEDED = {"SLURM_USER": "me", "SLURM_HOSTNAME": "login1,login2"}


@pytest.fixture
def find(tmp_path: Path) -> Find:
    def _find(name: str | None = None, **env: str) -> Resolved:
        home = {"HOME": str(tmp_path), "TOWLINE_CONFIG_DIR": str(tmp_path / "towline")}
        return resolve(name, env={**home, **env}, directory=tmp_path)

    return _find


def write_env(home: Path, text: str) -> Path:
    path = home / ".config" / "tao" / ".env"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_user_and_host_make_a_profile_with_the_presets_defaults(find: Find) -> None:
    profile = find(**NEEDED).profile
    assert (profile.name, profile.user, profile.hosts) == ("tao", "me", ("login1", "login2"))
    assert profile.partition == ("polar", "polar3", "polar4", "grizzly")
    assert profile.root == "/lustre/fsw/portfolios/edgeai/users/me"
    assert profile.time == 4 * 3600
    assert [mount.source for mount in profile.mounts] == ["/lustre"]


@pytest.mark.parametrize("missing", ["SLURM_USER", "SLURM_HOSTNAME"])
def test_without_user_or_host_there_is_no_such_profile(find: Find, missing: str) -> None:
    with pytest.raises(ConfigError, match="no cluster is configured"):
        find(**{name: text for name, text in NEEDED.items() if name != missing})


def test_the_second_names_count_when_the_first_are_not_set(find: Find) -> None:
    found = find(SSH_USER="me", SSH_HOST="login", SSH_KEY_PATH="/keys/id")
    assert (found.profile.user, found.profile.hosts) == ("me", ("login",))
    assert str(found.origins["user"]) == "SSH_USER in the environment"
    assert find(SSH_USER="other", **NEEDED).profile.user == "me"


def test_the_file_counts_and_the_environment_wins_over_it(find: Find, tmp_path: Path) -> None:
    path = write_env(tmp_path, "SLURM_USER=me\nexport SLURM_HOSTNAME='login1'\nSLURM_PARTITION=\"a,b\"  # mine\n")
    found = find(SLURM_PARTITION="c")
    assert found.profile.hosts == ("login1",)
    assert str(found.origins["hosts"]) == f"SLURM_HOSTNAME in {path}"
    assert found.profile.partition == ("c",)
    assert str(found.origins["partition"]) == "SLURM_PARTITION in the environment"
    assert str(found.origins["mounts"]) == "the preset tao"


def test_another_profile_is_preferred_and_the_preset_can_be_named(find: Find, tmp_path: Path) -> None:
    (tmp_path / "towline").mkdir()
    (tmp_path / "towline" / "config.toml").write_text('[clusters.mine]\nhosts = "x"\nroot = "/lustre/x"\n')
    assert find(**NEEDED).profile.name == "mine"
    assert find("tao", **NEEDED).profile.user == "me"


def test_inside_a_job_slurms_own_variables_are_left_out_and_that_is_said(find: Find, tmp_path: Path) -> None:
    write_env(tmp_path, "SLURM_USER=me\nSLURM_HOSTNAME=login1\n")
    found = find(SLURM_JOB_ID="41", SLURM_PARTITION="batch", SSH_KEY_PATH="/keys/id")
    assert found.profile.partition != ("batch",)
    assert str(found.profile.identity_file) == "/keys/id"
    assert "SLURM_PARTITION" in found.notes[0]
    assert "SSH_KEY_PATH" not in found.notes[0]
    with pytest.raises(ConfigError) as caught:
        find(HOME="/nowhere", SLURM_JOB_ID="41", **NEEDED)
    assert "SLURM_HOSTNAME" in caught.value.why


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SLURM_TIME_HOURS", "four"),
        ("SLURM_TIME_HOURS", "0"),
        ("SLURM_TIME_HOURS", "nan"),
        ("SLURM_TIMEOUT_HOURS", "-1"),
        ("SLURM_CPUS_PER_TASK", "1.5"),
        ("SLURM_MAX_GPUS_PER_NODE", "0"),
        ("SLURM_USE_REQUEUE", "perhaps"),
        ("SLURM_CONVERSION_TIMEOUT_MINUTES", "30m"),
    ],
)
def test_a_value_that_cannot_be_read_is_an_error_that_names_it(find: Find, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=name):
        find(**NEEDED, **{name: text})


def test_a_wrong_setting_names_its_variable(find: Find) -> None:
    with pytest.raises(ConfigError) as caught:
        find(**NEEDED, SLURM_BASE_RESULTS_DIR="/")
    assert caught.value.why.startswith("SLURM_BASE_RESULTS_DIR in the environment: ")


def test_hours_may_have_a_fraction(find: Find) -> None:
    assert find(**NEEDED, SLURM_TIME_HOURS="1.5").profile.time == 5400


def test_variables_without_a_setting_have_values_too() -> None:
    found = read_tao({"SLURM_USE_TIMEOUT": "False"})
    values = {variable.name: found.value(variable) for variable in VARIABLES}
    assert values["SLURM_USE_TIMEOUT"] is False
    assert values["SLURM_TIMEOUT_HOURS"] == 3.8


def test_resources_and_rules_of_the_preset(find: Find) -> None:
    profile = find(**NEEDED).profile
    assert (profile.preset, profile.restart, profile.mail_user) == ("tao", "on-fault", None)
    assert (profile.gpus_per_node, profile.cpus_per_task, profile.max_cpus_per_task) == (8, 16, 128)
    given = find(**NEEDED, SLURM_MAX_GPUS_PER_NODE="4", SLURM_CPUS_PER_TASK="8", SLURM_MAIL_USER="me@example.org")
    assert (given.profile.gpus_per_node, given.profile.cpus_per_task) == (4, 8)
    assert given.profile.mail_user == "me@example.org"
    assert find(**NEEDED, SLURM_USE_REQUEUE="off").profile.restart == "never"
    logs = {text: find(**NEEDED, SLURM_USE_SRUN_LOGS=text).profile.log_per for text in ("true", "false")}
    assert (profile.log_per, logs) == ("job", {"true": "node", "false": "job"})


def test_a_profile_that_names_the_preset_starts_jobs_as_it_does(find: Find, tmp_path: Path) -> None:
    (tmp_path / "towline").mkdir()
    path = tmp_path / "towline" / "config.toml"
    mine = '[clusters.mine]\nhosts = "x"\nroot = "/lustre/x"\npreset = "tao"\n'
    path.write_text(mine)
    found = find()
    profile = found.profile
    assert (profile.gpus_per_node, profile.cpus_per_task, profile.max_cpus_per_task) == (8, 16, 128)
    assert (profile.export, str(found.origins["export"])) == ("all", "the preset tao")
    assert (profile.partition, profile.mounts, profile.time) == ((), (), None)
    path.write_text(f'{mine}export = "none"\ngpus_per_node = 4\ncpus_per_gpu = 6\n')
    profile = find().profile
    assert (profile.export, profile.gpus_per_node, profile.cpus_per_gpu, profile.cpus_per_task) == ("none", 4, 6, None)


def test_how_the_preset_makes_files_of_images(find: Find) -> None:
    profile = find(**NEEDED).profile
    assert (profile.image_import, profile.image_tags, profile.import_partition) == ("auto", "reuse", "cpu")
    assert (profile.import_time, profile.import_memory, profile.image_cache) == (1800, 32768, None)
    given = find(
        **NEEDED,
        SLURM_CONVERSION_PARTITION="prep",
        SLURM_CONVERSION_TIMEOUT_MINUTES="45",
        SLURM_CONVERSION_MEMORY_GB="4",
        SLURM_SQSH_CACHE_DIR="/lustre/images",
        SLURM_FORCE_RECONVERT_LATEST="true",
        SLURM_REQUIRE_SQSH="true",
    ).profile
    assert (given.image_import, given.image_tags, given.import_partition) == ("always", "check", "prep")
    assert (given.import_time, given.import_memory, given.image_cache) == (2700, 4096, "/lustre/images")
    assert find(**NEEDED, SLURM_USE_SQSH="no", SLURM_REQUIRE_SQSH="yes").profile.image_import == "never"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=x", "x"),
        ("export A = x", "x"),
        ("A='a b' # c", "a b"),
        ('A="a#b"', "a#b"),
        ("A=a#b", "a#b"),
        ("A=a # c", "a"),
        ("A='open", "'open"),
        ("A=", ""),
        ("A=$HOME", "$HOME"),
    ],
)
def test_lines_of_the_file_are_read_as_shells_write_them(line: str, value: str) -> None:
    assert parse_env_file(f"# comment\n\nnonsense\n{line}\n") == {"A": value}
