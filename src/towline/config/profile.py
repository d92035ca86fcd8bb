"""`ClusterProfile`: one cluster's settings. Each is declared once; files, environment and documentation read that.

A setting `x` is the key `x` of the table `[clusters.NAME]` and the environment variable `TOWLINE_X`. Its help text
is its field's description; the variables that give it in the preset `tao` stand beside that.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from towline.models.fields import ClusterPath, Count, Line, MemoryMiB
from towline.models.image import Image
from towline.models.notice import Occasion
from towline.models.spec import AnyMount, Text, Token, Tokens, Walltime
from towline.models.values import check_absolute_path, check_job_name, check_token

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?")
_USER = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@+-]*\$?")


def _listed(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _host(value: str) -> str:
    if "@" in value:
        raise ValueError(f"{value!r} holds a user; write it as the setting `user`")
    name, colon, port = value.partition(":")
    if colon and port.isdigit() and name:
        raise ValueError(f"{value!r} holds a port; write it as the setting `port`")
    if not _HOST.fullmatch(value):
        raise ValueError(f"{value!r} is not a host name, an alias of ~/.ssh/config or an IP address")
    return value


def _user(value: str) -> str:
    if not _USER.fullmatch(value):
        raise ValueError(f"{value!r} is not a user name")
    return value


def _local_file(value: object) -> object:
    if not isinstance(value, str):
        return value
    if any(ord(char) < 32 or char == '"' for char in value):
        raise ValueError(f"{value!r} must not contain control characters or quotation marks")
    path = Path(value)
    if value.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:
            raise ValueError(f"the home directory in {value!r} is not known") from None
    if not path.is_absolute():
        raise ValueError(f"{value!r} must be an absolute path on this machine, or begin with ~/")
    return path


def _root(value: str) -> str:
    check_absolute_path(value)
    path = posixpath.normpath("/" + value.lstrip("/"))
    if path == "/":
        raise ValueError("it must be a directory below /, one that is yours on the shared file system")
    if "%" in path:
        raise ValueError(f"{value!r} must not contain '%', which Slurm replaces in file names")
    return check_token(path)


def _image(value: str) -> str:
    Image.parse(value)
    return value


def _url(value: str) -> str:
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d+)?/?", value):
        raise ValueError(f"{value!r} is not the URL of a store: https://HOST[:PORT]")
    return value.rstrip("/")


def _channel(value: str) -> str:
    kind, colon, rest = value.partition(":")
    if not colon or not rest or any(ord(char) < 33 for char in value):
        raise ValueError(
            f"{kind!r} is no URL of apprise (apprise's documentation lists them), env:VARIABLE or file:PATH"
        )
    return value


def hidden_channel(value: str) -> str:
    """A value of `notify` as it may be shown: a URL's scheme, for keys and passwords stand behind it."""
    kind, _, rest = value.partition(":")
    return value if kind in ("env", "file") and not rest.startswith("//") else f"{kind}://***"


def _path_pair(value: str) -> str:
    there, colon, here = value.partition(":")
    if not colon or ":" in here:
        raise ValueError(f"{value!r} must be two absolute paths with a colon between: ON_THE_CLUSTER:ELSEWHERE")
    for path in (there, here):
        check_absolute_path(path)
        if posixpath.normpath("/" + path.lstrip("/")) != path:
            raise ValueError(f"{path!r} must be written plainly, without `.`, `..` or a slash at its end")
    return value


def _path_map(value: tuple[str, ...]) -> tuple[str, ...]:
    prefixes = [pair.partition(":")[0] for pair in value]
    if twice := sorted({prefix for prefix in prefixes if prefixes.count(prefix) > 1}):
        raise ValueError(f"{' and '.join(twice)} must be given only once")
    return value


def _one_line(value: str) -> str:
    if any(ord(char) < 32 and char != "\t" for char in value):
        raise ValueError("it must be one line; several commands can be joined with `&&` or `;`")
    return value


Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], BeforeValidator(_listed)]
Mounts = Annotated[tuple[AnyMount, ...], BeforeValidator(_listed)]
Paths = Annotated[tuple[ClusterPath, ...], BeforeValidator(_listed)]
PathMap = Annotated[
    tuple[Annotated[str, AfterValidator(_path_pair)], ...], BeforeValidator(_listed), AfterValidator(_path_map)
]
StagingTool = Literal["fsspec", "aws", "rclone", "gcloud", "hf", "ngc"]
LocalFile = Annotated[Path, BeforeValidator(_local_file)]


def _tao(*names: str) -> dict[str, JsonValue]:
    """The variables of TAO that give a setting, the first that is set winning."""
    return {"tao": [*names]}


class ClusterProfile(BaseModel):
    """A cluster as its user describes it. See each field's description; `docs/configuration.md` lists them.

    Attributes:
        name: the profile's name; not a setting but its table's key.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(check_job_name)]
    transport: Literal["ssh", "local"] = Field(
        default="ssh", description="`ssh` reaches a login host; `local` runs Slurm's commands on this machine."
    )
    hosts: Hosts = Field(
        default=(),
        description="Login hosts, tried in this order: names, addresses or aliases of ~/.ssh/config.",
        json_schema_extra=_tao("SLURM_HOSTNAME", "SSH_HOST"),
    )
    user: Annotated[str, AfterValidator(_user)] | None = Field(
        default=None,
        description="User on the login hosts; ~/.ssh/config decides when it is not given.",
        json_schema_extra=_tao("SLURM_USER", "SSH_USER"),
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="SSH port; ~/.ssh/config decides when it is not given."
    )
    identity_file: LocalFile | None = Field(
        default=None,
        description="Private key on this machine; agents and ~/.ssh/config count when it is not given.",
        json_schema_extra=_tao("SSH_KEY_PATH"),
    )
    known_hosts_file: LocalFile | None = Field(
        default=None, description="File with the login hosts' keys, in place of ~/.ssh/known_hosts."
    )
    channels: Annotated[int, Field(ge=1, le=64)] = Field(
        default=8, description="Calls at a time over the connection to a host; fewer where the server wants that."
    )
    keepalive: Annotated[int, Field(ge=1, le=3600)] = Field(
        default=15,
        description="Seconds of silence until a host is asked whether it is there; after three questions it is gone.",
    )
    transfer_host: Annotated[str, AfterValidator(_host)] | None = Field(
        default=None,
        description="Host for moving files, in place of the login hosts; `local` when the file system is mounted here.",
    )
    path_map: PathMap = Field(
        default=(), description="Paths that are others on `transfer_host`: ON_THE_CLUSTER:THERE; the longest counts."
    )
    root: Annotated[str, AfterValidator(_root)] = Field(
        description="Absolute path of a directory of your own on the cluster's shared file system; jobs live below it.",
        json_schema_extra=_tao("SLURM_BASE_RESULTS_DIR"),
    )
    partition: Tokens = Field(
        default=(),
        description="Partition, or several, of jobs that name none.",
        json_schema_extra=_tao("SLURM_PARTITION"),
    )
    account: Token | None = Field(
        default=None, description="Slurm account of jobs that name none.", json_schema_extra=_tao("SLURM_ACCOUNT")
    )
    qos: Token | None = Field(default=None, description="Slurm QOS of jobs that name none.")
    image: Annotated[str, AfterValidator(_image)] | None = Field(
        default=None, description="Image of jobs that name none: a .sqsh path on the cluster or a registry reference."
    )
    runtime: Literal["auto", "pyxis", "apptainer", "singularity", "none"] = Field(
        default="auto",
        description="What starts containers: `auto` takes Pyxis, else Apptainer, else Singularity, as the site has it; "
        "`none` runs commands on the nodes themselves.",
    )
    image_import: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether images of registries become files by a job of their own before a job starts: `auto` does "
        "that where the cluster has `import_partition`; with `never` the job's own nodes pull them.",
        json_schema_extra=_tao("SLURM_USE_SQSH"),
    )
    image_cache: Annotated[str, AfterValidator(_root)] | None = Field(
        default=None,
        description="Directory of these files on the shared file system; `images` below `root` when not given.",
        json_schema_extra=_tao("SLURM_SQSH_CACHE_DIR"),
    )
    image_owners: Tokens = Field(
        default=(),
        description="Users whose files in `image_cache` count beside your own, for a cache that a group shares. Their "
        "checksums are compared before a file is used.",
    )
    image_tags: Literal["check", "reuse"] = Field(
        default="check",
        description="Whether a tag's file counts only while the registry has the same image (`check`), or for ever.",
        json_schema_extra=_tao("SLURM_FORCE_RECONVERT_LATEST"),
    )
    import_on: Literal["job", "login"] = Field(
        default="job",
        description="What imports images: a `job`, or the `login` host, where no node reaches the registries; then "
        "your jobs are submitted when their images are there.",
    )
    import_partition: Token = Field(
        default="cpu",
        description="Partition of the jobs that import images.",
        json_schema_extra=_tao("SLURM_CONVERSION_PARTITION"),
    )
    import_account: Token | None = Field(
        default=None, description="Account of the jobs that import images; `account` when not given."
    )
    import_cpus: Count = Field(default=4, description="CPUs of a job that imports an image.")
    import_memory: MemoryMiB = Field(
        default=16384,
        description="Memory of a job that imports an image, for example 32G; a number is MiB.",
        json_schema_extra=_tao("SLURM_CONVERSION_MEMORY_GB"),
    )
    import_time: Walltime = Field(
        default=3600,
        description="Walltime of a job that imports an image, for example 30m.",
        json_schema_extra=_tao("SLURM_CONVERSION_TIMEOUT_MINUTES"),
    )
    data_cache: Annotated[str, AfterValidator(_root)] | None = Field(
        default=None,
        description="Directory of the copies of data from elsewhere; `staged` below `root` when not given.",
    )
    staging_time: Walltime = Field(
        default=28800,
        description="Walltime of a job that brings data from elsewhere; less where `import_partition` allows less. "
        "Where and with what it runs say `import_partition`, `import_account`, `import_cpus` and `import_memory`.",
    )
    staging_python: ClusterPath | None = Field(
        default=None,
        description="Python 3 on the cluster that brings data, for example of an environment with fsspec; the node's "
        "own when not given. One that is not there is an error, and nothing takes its place.",
    )
    staging_image: Annotated[str, AfterValidator(_image)] | None = Field(
        default=None, description="Image with a Python 3 that brings data, instead of the node's own: a .sqsh path."
    )
    staging_tools: Annotated[tuple[StagingTool, ...], BeforeValidator(_listed)] = Field(
        default=(),
        description="Programs of the site that bring data in place of Towline's own: `aws` (s3), `rclone` (s3, gs), "
        "`gcloud` (gs), `hf`, `ngc`; or `fsspec` for the file systems of `staging_python` or `staging_image`.",
    )
    s3_endpoint: Annotated[str, AfterValidator(_url)] | None = Field(
        default=None,
        description="URL of the store that `s3://` means; Amazon's when not given.",
        json_schema_extra=_tao("S3_ENDPOINT_URL"),
    )
    s3_region: Token | None = Field(
        default=None, description="Region of that store.", json_schema_extra=_tao("CLOUD_REGION")
    )
    mounts: Mounts = Field(
        default=(),
        description="Mounts that every job's container has: SRC, SRC:DST or SRC:DST:ro.",
        json_schema_extra=_tao("SLURM_CONTAINER_MOUNTS"),
    )
    time: Walltime | None = Field(
        default=None,
        description="Walltime of jobs that name none, for example 4h or 1-00:00:00.",
        json_schema_extra=_tao("SLURM_TIME_HOURS"),
    )
    preset: Literal["", "tao"] = Field(
        default="",
        description="`tao` follows the conventions of NVIDIA's TAO Toolkit where they differ from Towline's.",
    )
    gpus_per_node: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None,
        description="GPUs of a whole node, for jobs that ask for GPUs in total; the cluster is asked when not given.",
        json_schema_extra=_tao("SLURM_MAX_GPUS_PER_NODE"),
    )
    cpus_per_task: Count | None = Field(
        default=None,
        description="CPUs of each task of jobs that name none; the GPUs' share of a node when not given.",
        json_schema_extra=_tao("SLURM_CPUS_PER_TASK"),
    )
    cpus_per_gpu: Count | None = Field(
        default=None,
        description="CPUs that belong to a GPU, where a site keeps some for itself; counted from its nodes otherwise.",
    )
    max_cpus_per_task: Count | None = Field(
        default=None,
        description="The most CPUs of a task that are asked for unless a job says more.",
        json_schema_extra=_tao("SLURM_MAX_CPUS_PER_TASK"),
    )
    restart: Literal["on-fault", "never"] = Field(
        default="on-fault",
        description="Whether jobs that do not say may start again after faults and preemption.",
        json_schema_extra=_tao("SLURM_USE_REQUEUE"),
    )
    notify: Annotated[tuple[Annotated[str, AfterValidator(_channel)], ...], BeforeValidator(_listed)] = Field(
        default=(),
        description="Where people are told of jobs: URLs of apprise such as `slack://…`, `mailto://…`, `dbus://`, or "
        "`env:VARIABLE` and `file:PATH`, which hold them. Needs `towline[notify]`.",
    )
    notify_on: Annotated[tuple[Occasion, ...], BeforeValidator(_listed)] = Field(
        default=("ended", "restarted", "stuck"),
        description="What they are told: jobs that `ended`, `failed`, `started`, `restarted` after a fault, or are "
        "`stuck` in the queue for good.",
    )
    log_per: Literal["job", "node", "rank"] = Field(
        default="job",
        description="Whether jobs that do not say have log files for the whole job, for each node or for each rank.",
        json_schema_extra=_tao("SLURM_USE_SRUN_LOGS"),
    )
    mail_user: Token | None = Field(
        default=None,
        description="Whom Slurm writes to about every event of jobs that do not say.",
        json_schema_extra=_tao("SLURM_MAIL_USER"),
    )
    unseen: Paths = Field(
        default=(),
        description="Directories of the compute nodes that login hosts cannot see; paths below them are not checked.",
    )
    gpu_request: Literal["gres", "gres-typed", "gpus-per-node", "constraint"] = Field(
        default="gres",
        description="How the site wants GPUs asked for: `--gres=gpu:N`, `--gres=gpu:TYPE:N`, `--gpus-per-node=N`, or "
        "`--gres=gpu:N` with the type in `--constraint`.",
    )
    export: Literal["none", "all"] = Field(
        default="none",
        description="What jobs get of your environment on the cluster: `all`, or `none` but what Slurm sets for jobs.",
    )
    mpi: Token | None = Field(
        default=None,
        description="How jobs that ask for MPI get it, one of `srun --mpi=list`; the site's default when not given.",
    )
    comment: Line = Field(
        default="",
        description="Comment that the site wants on every job, for example a policy in JSON; a job's own is added.",
    )
    setup: Annotated[Text, AfterValidator(_one_line)] = Field(
        default="",
        description="Shell line that runs before Slurm's commands on the login host, for example `module load slurm`.",
    )
    poll_interval: Annotated[float, Field(ge=0.5, le=3600)] = Field(
        default=30.0, description="Seconds between two looks at the queue; all jobs are looked at together."
    )

    @model_validator(mode="after")
    def _reachable(self) -> ClusterProfile:
        if self.transport == "ssh" and not self.hosts:
            raise ValueError('hosts: name at least one login host, or set transport = "local"')
        if self.path_map and not self.transfer_host:
            raise ValueError("path_map: it tells the paths of `transfer_host`, which is not set")
        return self
