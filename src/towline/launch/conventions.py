"""What the preset `tao` adds to a job: variables of its containers, and files under the names of TAO's own layout.

The names are those that TAO's containers and the people who read along on the cluster know. Everything lies in the
job's directory; the layout is links to it, made when their names are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from towline.launch.quoting import quote
from towline.models.parts import shared_path
from towline.models.spec import JobSpec

COSMOS_CUDA = "12.8"
"""The CUDA that Cosmos-RL is for, when nothing else is said."""

LAYOUT = "script/layout"
"""File of a job's directory: lines `folder PATH` for what is to be made in it, `link PATH TARGET` for links below the
root. Where it is there, the attempts' logs are linked below the root, too; see `stage.sh`."""

BY_BASH = (
    'if [ -z "${tl_by_bash-}" ] && command -v bash >/dev/null 2>&1; then tl_by_bash=1 exec bash "$0" "$@"; fi\n'
    "unset tl_by_bash\n"
)
"""Head of a command's script that has it read by bash where the image has one: TAO's commands are written for that."""


NEEDS_PYTHON = "# towline: needs Python\n"
"""First line of shell text that cannot run in an image without Python; it is looked at before the job is sent."""
NEEDS_NGC = "# towline: needs ngc\n"
"""The line after that where the image has to hold the Python module `ngcsdk` or the program `ngc`, too."""


def before_lines(root: str, job_id: str) -> str:
    """Lines of sh that set what a job's own variables may change.

    `TAO_API_RESULTS_DIR` is the parent of the job's results, for the containers' code appends the job's id.
    """
    results = quote(f"{root}/results")
    return (
        f"export TAO_JOB_ID={quote(job_id)}\n"
        f"TAO_RESULTS_ROOT=$(cd {results} 2>/dev/null && pwd -P) || TAO_RESULTS_ROOT={results}\n"
        'export TAO_RESULTS_ROOT TAO_API_RESULTS_DIR="$TAO_RESULTS_ROOT"\n'
        "export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1\n"
        f"{_unless_set('HF_HOME', f'{root}/.cache/huggingface')}"
        f"{_unless_set('NCCL_DEBUG', 'INFO')}"
        f"{_unless_set('LOGLEVEL', 'INFO')}"
        "export HF_HOME NCCL_DEBUG LOGLEVEL\n"
    )


def after_lines(root: str) -> str:
    """Lines of sh that follow from a job's own variables: which CUDA it wants, and what Cosmos-RL needs."""
    return (
        'if [ -n "${COSMOS_NODE_ROLE:-}" ]; then\n'
        f"    {_unless_set('COSMOS_CACHE', f'{root}/.cache/cosmos')}"
        f"    {_unless_set('CUDA_OVERRIDE_VERSION', COSMOS_CUDA)}"
        "    export COSMOS_CACHE CUDA_OVERRIDE_VERSION\n"
        "fi\n"
        'if [ -n "${CUDA_OVERRIDE_VERSION:-}" ]; then\n'
        "    tl_cuda=/usr/local/cuda-$CUDA_OVERRIDE_VERSION\n"
        '    export CUDA_HOME="$tl_cuda" CUDA_PATH="$tl_cuda"\n'
        '    export LD_LIBRARY_PATH="$tl_cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"\n'
        '    export LIBRARY_PATH="$tl_cuda/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}"\n'
        '    export CPATH="$tl_cuda/include${CPATH:+:$CPATH}"\n'
        "    unset tl_cuda\n"
        "fi\n"
    )


def as_paths(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with paths in place of values such as `slurm://host/path`, as TAO's microservices write them."""
    return {name: _path(value) for name, value in env.items()}


def _path(value: str) -> str:
    return (shared_path(value) or value) if value.startswith("slurm://") else value


def layout_files(spec: JobSpec, job_id: str, environment: Mapping[str, str]) -> dict[str, bytes]:
    """Path below the job's directory → content: what TAO's layout has beside the scripts, and the layout itself."""
    return {
        "script/specs.json": _compact(spec.model_dump(mode="json", exclude_defaults=True)),
        "script/env.json": _compact(environment),
        "script/meta.json": _meta(environment.get("CLOUD_METADATA", "")),
        LAYOUT: "".join(f"link {name} ../jobs/{job_id}/{file}\n" for name, file in _links(job_id)).encode(),
    }


def _links(job_id: str) -> tuple[tuple[str, str], ...]:
    return (
        (f"specs/{job_id}.json", "script/specs.json"),
        (f"env/{job_id}.json", "script/env.json"),
        (f"meta/{job_id}.json", "script/meta.json"),
        (f"entrypoints/job_{job_id}.sh", "script/entrypoint"),
        (f"sbatch/job_{job_id}.sbatch", "script/batch"),
    )


def _meta(text: str) -> bytes:
    try:
        return _compact(json.loads(text))
    except ValueError:
        return b"{}\n"


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _unless_set(name: str, value: str) -> str:
    return f'[ -n "${{{name}:-}}" ] || {name}={quote(value)}\n'
