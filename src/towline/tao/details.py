"""`backend_details`, `slurm_metadata` and `cloud_specific_details` of TAO's microservices: models with JSON Schema.

What clients send is read with `from_client`: what only the server writes cannot come from there, keys that are not
known are refused, and so is every value that could mean something else on a command line, in a directive or in a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from towline.models.errors import SpecError
from towline.models.job import JobRecord
from towline.models.spec_errors import spec_error
from towline.models.values import check_absolute_path, check_one_line, check_token

M = TypeVar("M", bound=BaseModel)

_MOST = 255
"""Characters of a name."""


def _word(value: str) -> str:
    if len(value) > _MOST:
        raise ValueError(f"it is longer than {_MOST} characters")
    return check_token(check_one_line(value))


def _name(value: str) -> str:
    """A user's or a host's name: what ssh takes for one, and never for an option or a command."""
    value = _word(value)
    if not value.replace("-", "").replace("_", "").replace(".", "").replace(":", "").isalnum() or not value.isascii():
        raise ValueError(f"{value!r} is no name of a user or a host")
    return value


def _partitions(value: str) -> str:
    if not all(part and part.replace("-", "").replace("_", "").replace(".", "").isalnum() for part in value.split(",")):
        raise ValueError(f"{value!r} is no list of partitions; write their names with commas")
    return _word(value)


def _base(value: str) -> str:
    path = check_absolute_path(check_one_line(value))
    if not path.strip("/"):
        raise ValueError("it must not be the root of the file system")
    return path


Partitions = Annotated[str, AfterValidator(_partitions), Field(max_length=1024)]
Word = Annotated[str, AfterValidator(_word), Field(max_length=_MOST)]
Name = Annotated[str, AfterValidator(_name), Field(max_length=_MOST)]
SlurmId = Annotated[str, Field(pattern=r"^[0-9]{1,10}$")]
Path = Annotated[str, AfterValidator(_base), Field(max_length=4096)]


class _Details(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class SlurmMetadata(_Details):
    """What Slurm has of a job; written by the server once sbatch has answered, and by nobody else.

    Attributes:
        slurm_job_id: Slurm's id of the newest attempt.
        job_dir: the job's directory on the cluster.
        retry_count: new starts so far.
        failed_slurm_job_ids: Slurm's ids of the attempts that failed.
    """

    slurm_job_id: SlurmId
    job_dir: Path
    retry_count: Annotated[int, Field(ge=0, le=1000)] = 0
    failed_slurm_job_ids: tuple[SlurmId, ...] = ()

    @classmethod
    def of(cls, record: JobRecord) -> SlurmMetadata | None:
        """That of a job; None as long as Slurm has not answered."""
        last = record.last
        if not last.slurm_id:
            return None
        failed = tuple(each for each in record.slurm_ids if each != last.slurm_id)
        return cls(
            slurm_job_id=last.slurm_id.partition("+")[0],
            job_dir=record.directory,
            retry_count=max(0, last.number - 1),
            failed_slurm_job_ids=failed,
        )


class BackendDetails(_Details):
    """Where a job is to run.

    Attributes:
        backend_type: `slurm`.
        partition: one or several partitions; the cluster's default when not given.
        cluster_name: which cluster, where there are several.
        slurm_metadata: what Slurm has of the job; never a client's.
    """

    backend_type: Literal["slurm"]
    partition: Partitions | None = None
    cluster_name: Word | None = None
    slurm_metadata: SlurmMetadata | None = None

    @classmethod
    def from_client(cls, values: Mapping[str, Any]) -> BackendDetails:
        """Read what a client has sent.

        Raises:
            SpecError: a value cannot be right, or is the server's to write.
        """
        if values.get("slurm_metadata") is not None:
            raise SpecError(
                "slurm_metadata cannot be given",
                why="The server writes it once Slurm has the job.",
                fix="Take it out of backend_details.",
            )
        return _read(cls, values)

    def with_job(self, record: JobRecord) -> BackendDetails:
        """The same with what Slurm has of a job."""
        return self.model_copy(update={"slurm_metadata": SlurmMetadata.of(record)})


class CloudSpecificDetails(_Details):
    """The cluster and its login, as a workspace has them.

    Attributes:
        cloud_type: `slurm`.
        slurm_user: the user on the login hosts.
        slurm_hostname: the login hosts, tried in this order.
        base_results_dir: directory of the user's own on the shared file system; the preset's when not given.
    """

    cloud_type: Literal["slurm"]
    slurm_user: Name
    slurm_hostname: Annotated[tuple[Name, ...], Field(min_length=1, max_length=16)]
    base_results_dir: Path | None = None

    @classmethod
    def from_client(cls, values: Mapping[str, Any]) -> CloudSpecificDetails:
        """Read what a client has sent.

        Raises:
            SpecError: a value cannot be right.
        """
        return _read(cls, values)

    def variables(self) -> dict[str, str]:
        """TAO's variables that mean the same, for a profile."""
        values = {"SLURM_USER": self.slurm_user, "SLURM_HOSTNAME": ",".join(self.slurm_hostname)}
        return {**values, "SLURM_BASE_RESULTS_DIR": self.base_results_dir} if self.base_results_dir else values


def _read(model: type[M], values: Mapping[str, Any]) -> M:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise spec_error(error, model) from None
