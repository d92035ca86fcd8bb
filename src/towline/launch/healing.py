"""What the supervisor must know to judge the end of an attempt, and to start the next one."""

from __future__ import annotations

from towline.launch.quoting import quote, quote_words
from towline.models.ids import attempt_token
from towline.models.roles import nodes_of
from towline.models.spec import JobSpec


def settings_file(
    spec: JobSpec, job_id: str, directory: str, *, message_timeout: int, exclude: str | None = None
) -> str:
    """The sh text that sets `tl_heal_…` for `scripts/heal.sh`.

    Args:
        spec: the job with defaults filled in.
        job_id: Towline's id.
        directory: the job directory.
        message_timeout: Slurm's MessageTimeout in seconds.
        exclude: nodes that no attempt may run on; the spec's when not given.
    """
    resume = spec.resume
    signal, grace = spec.warning or ("", "")
    values: dict[str, object] = {
        "name": attempt_token(spec.name, job_id, 0).removesuffix("-a0"),
        "logs": f"{directory}/attempts".replace("%", "%%"),
        "restart": spec.restart or "on-fault",
        "retries": spec.retries,
        "limit": spec.resources.time or "",
        "signal": signal,
        "grace": grace,
        "checkpoints": resume.checkpoints if resume else "",
        "exit_code": (resume.exit_code if resume else None) or "",
        "patience": resume.without_progress if resume else 3,
        "exclude": (exclude if exclude is not None else spec.exclude) or "",
        "nodes": "" if spec.components else nodes_of(spec.roles) if spec.roles else spec.resources.nodes,
        "groups": " ".join(node_groups(spec)),
        "hang": spec.hang_after or "",
        "depends": "yes" if spec.depends_on else "",
        "begins": "yes" if spec.begin else "",
        "timeout": message_timeout,
    }
    return "".join(f"tl_heal_{name}={quote(str(value))}\n" for name, value in values.items())


def node_groups(spec: JobSpec) -> tuple[str, ...]:
    """Words `COMPONENT:NODES:GPUS` for nodes that are alike, GPUs on each; only components have numbers."""
    if spec.components:
        sizes = (each.resources for each in spec.components)
        return tuple(f"{number}:{size.nodes}:{size.gpus_per_node}" for number, size in enumerate(sizes))
    nodes = max(spec.resources.nodes, nodes_of(spec.roles) if spec.roles else 1)
    return (f":{nodes}:{spec.resources.gpus_per_node}",)


def resume_file(spec: JobSpec) -> str:
    """What a command gets that is started again and has something to resume from: its words and variables, as sh text.

    The supervisor says so with TOWLINE_RESUME; empty when the spec adds nothing.
    """
    if spec.resume is None or not (spec.resume.args or spec.resume.env):
        return ""
    words = f'    set -- "$@" {quote_words(spec.resume.args)}\n' if spec.resume.args else ""
    variables = "".join(f"    export {name}={quote(value)}\n" for name, value in spec.resume.env.items())
    return f'if [ -n "${{TOWLINE_RESUME:-}}" ]; then\n{words}{variables}fi\n'
