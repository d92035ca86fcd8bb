"""The files of a job with roles: each has what a job without roles has, below `script/roles/<role>/`."""

from __future__ import annotations

from dataclasses import replace

from towline.launch.files import (
    LaunchPlan,
    entrypoint,
    environment_file,
    packaged,
    public_files,
    step_command,
    step_settings,
    words_of,
)
from towline.launch.quoting import quote
from towline.models.roles import Role, component_numbers, first_nodes


def role_files(launch: LaunchPlan) -> dict[str, bytes]:
    """Path below the job directory → content of every file that the launch of a job with roles needs."""
    names = " ".join(role.name for role in launch.spec.roles)
    files = {
        **public_files(launch),
        "script/roles.sh": packaged("roles.sh"),
        "script/step": f"{step_settings(launch)}tl_step_roles={quote(names)}\n".encode(),
    }
    first, components = first_nodes(launch.spec.roles), component_numbers(launch.spec.roles)
    for role in launch.spec.roles:
        own = of_role(launch, role)
        files |= {
            f"script/roles/{role.name}/entrypoint": entrypoint(own.spec, by_bash=bool(own.tao_root)).encode(),
            f"script/roles/{role.name}/env": environment_file(own).encode(),
            f"script/roles/{role.name}/step": _step_file(
                own, role, first[role.name] + 1, components.get(role.name)
            ).encode(),
        }
    return files


def of_role(launch: LaunchPlan, role: Role) -> LaunchPlan:
    """The launch of one role, as if it were a job of its own."""
    size = {"nodes": role.nodes, "tasks_per_node": role.tasks_per_node}
    host = next((each for each in launch.spec.roles if each.name == role.on), role)
    resources = (host.resources or launch.spec.resources).model_copy(update=size)
    resume = launch.spec.resume and launch.spec.resume.model_copy(update={"args": ()})  # whose would the words be?
    spec = launch.spec.model_copy(
        update={
            "resume": resume,
            "command": role.command,
            "shell": role.shell,
            "roles": (),
            "env": {**launch.spec.env, **role.env},
            "resources": resources,
        }
    )
    return replace(launch, spec=spec, container=launch.containers.get(role.name, ()), convention="")


def _step_file(launch: LaunchPlan, role: Role, first: int, component: int | None) -> str:
    """One role's step for `scripts/roles.sh`, which knows the hosts; all roles see all that their nodes have."""
    srun, *words = step_command(launch)
    settings = {
        "tl_step_tasks": role.nodes * role.tasks_per_node,
        "tl_role_first": first,
        "tl_role_nodes": role.nodes,
        "tl_role_port": role.ready_port or "",
        "tl_role_patience": role.ready_timeout,
        "tl_role_service": "yes" if role.service else "",
        "tl_role_linger": role.linger,
        **({} if component is None else {"tl_role_component": component}),
    }
    group = () if component is None else (f"--het-group={component}",)
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    rest = words_of((*group, "--overlap", *words))
    return f'{lines}set -- \\\n    {quote(srun)} \\\n    "--nodelist=$tl_role_hosts" \\\n    {rest}\n'
