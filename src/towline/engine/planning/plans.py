"""From a spec to a plan: defaults filled in, everything checked, every file rendered. Pure: nothing is sent here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from towline.config.profile import ClusterProfile
from towline.container.mounts import merge_mounts
from towline.engine.planning.beforehand import AS_IT_IS, AS_THEY_ARE, Prepared, Staged
from towline.engine.planning.checks import check_spec, unseen_paths
from towline.engine.planning.containers import check_image
from towline.engine.planning.datasets import Placed, dataset_checks
from towline.engine.planning.defaults import fill_in, with_preset
from towline.engine.planning.dependencies import NO_DEPENDENCIES, Settled
from towline.engine.planning.rendering import Draft, draft_files, is_below
from towline.engine.staging import code as staging
from towline.models.code import Code
from towline.models.errors import PlanRefused, SpecError
from towline.models.parts import Mount
from towline.models.plan import Check, Plan, Verdict
from towline.models.site import SiteFacts
from towline.models.spec import JobSpec
from towline.slurm.commands import sbatch

_VARIABLE = re.compile(r"\$\{?[A-Za-z_][A-Za-z0-9_]*\}?")


def make_plan(
    spec: JobSpec,
    profile: ClusterProfile,
    facts: SiteFacts,
    job_id: str,
    settled: Settled = NO_DEPENDENCIES,
    code: Code | None = None,
    prepared: Prepared = AS_THEY_ARE,
    staged: Staged = AS_IT_IS,
    placed: Placed | None = None,
) -> Plan:
    """What a submission of the spec on that cluster will do.

    Args:
        spec: the job.
        profile: the cluster's settings.
        facts: what the site said of itself.
        job_id: the id that the job will have.
        settled: what became of the jobs that it depends on.
        code: the working tree that the spec names.
        prepared: what files are made of its images.
        staged: what copies its data from elsewhere becomes.
        placed: the network's specification with its datasets.

    Raises:
        SpecError: a value cannot stand where the batch script needs it.
    """
    facts = with_preset(facts, profile)
    filled = fill_in(spec.model_copy(update={"inputs": staged.inputs_of(spec)}), profile, facts)
    spec = filled.spec.model_copy(update={"depends_on": settled.wanted, "inputs": spec.inputs})
    spec = _with_code(spec, code) if code else spec
    draft = Draft(job_id, spec, profile, facts, settled, code, prepared, staged, placed)
    required = tuple(path for path in draft.needed if not is_below(path, profile.unseen))
    return Plan(
        job_id=job_id,
        token=draft.token,
        spec=spec,
        directory=draft.directory,
        files=draft_files(draft),
        checks=_checks(draft, required),
        required_paths=required,
        sbatch=sbatch(f"{draft.directory}/script/batch"),
        notes=(*filled.notes, *_literal(spec), *prepared.notes, *staged.notes, *(staging.notes(code) if code else ())),
        facts_asked=facts.asked,
        code=code,
        images=prepared.images,
        inputs=staged.inputs,
        waits_for=settled.terms,
    )


def _literal(spec: JobSpec) -> tuple[str, ...]:
    """What to know of values of the environment that look as if a shell were to fill them in: none does."""
    variables = [*spec.env.items(), *(pair for role in spec.roles for pair in role.env.items())]
    return tuple(
        f"the variable {name} holds {found[0]} as these very characters: values are taken as they are; to have it "
        f"filled in on the node, set it in the command: --shell '{name}=... COMMAND'"
        for name, value in dict(variables).items()
        if (found := _VARIABLE.search(value))
    )


def _checks(draft: Draft, required: Sequence[str]) -> tuple[Check, ...]:
    """What must hold; of paths that login hosts do not see nothing can be told."""
    image = check_image(draft.spec, draft.profile, draft.facts)
    images = (image,) if image.verdict is Verdict.FAILS or not draft.prepared.checks else draft.prepared.checks
    return (
        *dataset_checks(draft.placed, draft.located),
        *draft.staged.checks,
        *images,
        *check_spec(draft.spec, draft.facts, required),
        *unseen_paths([path for path in draft.needed if path not in required]),
        *draft.settled.checks,
    )


def _with_code(spec: JobSpec, code: Code) -> JobSpec:
    """The spec with its code as working directory: a mount for a container, the snapshot itself without one."""
    if spec.workdir and not spec.image:
        raise SpecError(
            f"the job cannot begin both in its code and in {spec.workdir}",
            why="Without an image nothing can be mounted: the code is the working directory.",
            fix="Leave workdir out, or give an image.",
        )
    place = spec.workdir or (staging.MOUNT if spec.image else code.place)
    own = (Mount(source=code.place, target=place, mode="ro"),) if spec.images else ()
    return spec.model_copy(update={"mounts": merge_mounts(spec.mounts, own), "workdir": place})


def check_plan(plan: Plan) -> None:
    """Return when no check fails.

    Raises:
        PlanRefused: with every failure and its remedy.
    """
    if plan.failures:
        raise PlanRefused(
            "the job cannot run on this cluster as it is described",
            why="\n".join(f"{check.name}: {check.evidence}" for check in plan.failures),
            fix="\n".join(dict.fromkeys(check.fix for check in plan.failures if check.fix)),
        )
