"""`Role`: one of several groups of nodes in a job's allocation, with a command of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from towline.models.fields import Count, Environment, ImageText, Model, Text, Token, Tokens, Walltime
from towline.models.resources import Resources

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


def _role_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name for a role; use small letters, digits and -, at most 32")
    return name


RoleName = Annotated[str, AfterValidator(_role_name)]
Seconds = Annotated[Walltime, Field(le=86400)]


class Role(Model):
    """A group of nodes with its command; roles start in their order and end together.

    Attributes:
        name: names it in logs, in `TOWLINE_ROLE` and in the verdict.
        command: the program and its arguments; or one text for `/bin/sh` in `shell`.
        shell: shell text instead of a command.
        nodes: how many nodes it has: the next of the allocation's, or with `on` the first of another role's.
        on: the role whose nodes it shares.
        tasks_per_node: how often its command runs on each of its nodes.
        image: its image; the job's when not given.
        env: public environment of its command, added to the job's.
        ready_port: TCP port that its first task listens on once it is ready; the roles after it wait for that.
        ready_timeout: seconds within which it must be ready.
        service: whether it runs for the others' sake: the job is done when all others are, and the service is
            ended then. One that leaves earlier, even with 0, has failed the job.
        linger: seconds in which the others may still end well after a service left with 0.
        resources: what each of its nodes needs, where that is not what the job's `resources` say. Then, or with a
            `partition` or `constraint` of its own, the job is heterogeneous, and each role with nodes of its own is a
            component of it.
        partition: its partitions; the job's when empty.
        constraint: features that its nodes must have; the job's when not given.
    """

    name: RoleName
    command: tuple[Text, ...] = ()
    shell: Text = ""
    nodes: Count = 1
    on: RoleName | None = None
    tasks_per_node: Count = 1
    image: ImageText | None = None
    env: Environment = Field(default_factory=dict)
    ready_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    ready_timeout: Seconds = 600
    service: bool = False
    linger: Seconds = 30
    resources: Resources | None = None
    partition: Tokens = ()
    constraint: Token | None = None

    @property
    def apart(self) -> bool:
        """Whether its nodes are of another kind than the job's others."""
        return bool(self.resources or self.partition or self.constraint)

    @model_validator(mode="after")
    def _of_its_own_nodes(self) -> Role:
        if self.apart and self.on is not None:
            raise ValueError(f"role {self.name}: it shares the nodes of {self.on}, so that it can ask for no others")
        wanted = self.resources or Resources()
        if (wanted.nodes, wanted.tasks_per_node) != (1, 1) or wanted.gpus is not None or wanted.time is not None:
            raise ValueError(
                f"role {self.name}: nodes and tasks_per_node stand in the role itself, the time in the job's "
                "resources, and GPUs are given per node"
            )
        return self

    @model_validator(mode="after")
    def _one_command(self) -> Role:
        if bool(self.command) == bool(self.shell.strip()) or (self.command and not self.command[0]):
            raise ValueError(f"role {self.name}: give either a command or shell text")
        return self

    @property
    def command_line(self) -> str:
        """The command as a person would type it."""
        return self.shell or shlex.join(self.command)


def check_roles(roles: Sequence[Role]) -> None:
    """Return when the roles fit together.

    Raises:
        ValueError: two have one name, one shares nodes that there are not, or nothing but services is there.
    """
    own = {role.name: role for role in roles if role.on is None}
    if len({role.name for role in roles}) < len(roles):
        raise ValueError("roles: two have the same name")
    for role in roles:
        if role.on is None:
            continue
        if role.on not in own:
            raise ValueError(
                f"roles: {role.name} shares the nodes of {role.on}, which is no role with nodes of its own"
            )
        if role.nodes > own[role.on].nodes:
            raise ValueError(f"roles: {role.name} wants {role.nodes} of the {own[role.on].nodes} nodes of {role.on}")
    if roles and all(role.service for role in roles):
        raise ValueError("roles: all are services; the job would never be done")


def nodes_of(roles: Sequence[Role]) -> int:
    """How many nodes the allocation has."""
    return sum(role.nodes for role in roles if role.on is None)


def component_numbers(roles: Sequence[Role]) -> dict[str, int]:
    """Role → number of its component, in a heterogeneous job; empty for any other."""
    if not any(role.apart for role in roles):
        return {}
    own = {role.name: number for number, role in enumerate(role for role in roles if role.on is None)}
    return {role.name: own[role.on or role.name] for role in roles}


def tasks_of(role: Role, roles: Sequence[Role]) -> int:
    """The most tasks that a node of the role has, its own or those of a role that shares it."""
    return max(each.tasks_per_node for each in roles if role.name in (each.name, each.on))


def first_nodes(roles: Sequence[Role]) -> dict[str, int]:
    """Role → which of the allocation's nodes is its first, from 0."""
    first: dict[str, int] = {}
    following = 0
    for role in roles:
        if role.on is None:
            first[role.name] = following
            following += role.nodes
    return {role.name: first[role.on or role.name] for role in roles}
