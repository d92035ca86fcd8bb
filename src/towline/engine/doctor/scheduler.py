"""Checks of Slurm: its commands, what it is, and whether it would take a job."""

from __future__ import annotations

import re
from collections.abc import Sequence

from towline.engine.doctor.facts import Facts, Finding, Kind, cannot_tell, fails, ok
from towline.models.site import Partition
from towline.models.values import format_walltime
from towline.slurm.doctor import Answer, Reply

_OLDEST = (20, 11)
_STYLES = ("gres", "gpus-per-node", "gres-typed")
_NO_NODES = re.compile(r"node configuration is not available|required for job are DOWN", re.IGNORECASE)
_DISABLED = "accounting storage is disabled"


def slurm(facts: Facts) -> Sequence[Finding]:
    """Slurm's commands are there on each login host, and the controller answers."""
    return [_slurm(login.host, login.answer) for login in facts.reached] or [_nothing("slurm")]


def cluster_name(facts: Facts) -> Sequence[Finding]:
    """All login hosts are the same cluster's."""
    names = {login.host: login.answer.config["ClusterName"] for login in facts.reached if login.answer.config}
    if not names:
        return [_nothing("cluster-name")]
    if len(set(names.values())) > 1:
        told = ", ".join(f"{host}: {name}" for host, name in names.items())
        first = next(iter(names.values()))
        fix = f"Name only the login hosts of one cluster as `hosts`; for {first}: " + ", ".join(
            host for host, name in names.items() if name == first
        )
        return [fails("cluster-name", Kind.HERE, f"the hosts belong to different clusters ({told})", fix)]
    return [ok("cluster-name", f"{next(iter(names.values()))} ({', '.join(names)})")]


def partition(facts: Facts) -> Sequence[Finding]:
    """The partitions that jobs go to are there and take jobs."""
    answer = facts.answer
    if not (answer and answer.partitions):
        return [_nothing("partition")]
    there = ", ".join(_described(part) for part in answer.partitions)
    wanted = asked(facts)
    if not wanted:
        fix = f"Set `partition` in the profile, for the site has no default one. There are: {there}"
        return [fails("partition", Kind.SLURM, "no partition is named", fix)]
    known = {part.name: part for part in answer.partitions}
    for name in wanted:
        if name not in known:
            fix = f"{facts.setting('partition')} one of these: {there}"
            return [fails("partition", Kind.SLURM, f"there is no partition {name}", fix)]
        if not known[name].available:
            return [fails("partition", Kind.SLURM, f"partition {name} takes no jobs now", f"Use another: {there}")]
    return [ok("partition", "; ".join(_described(known[name]) for name in wanted))]


def limits(facts: Facts) -> Sequence[Finding]:
    """The profile's walltime is one that its partitions allow."""
    answer = facts.answer
    if not (answer and answer.partitions):
        return [_nothing("limits")]
    time = facts.profile.time
    parts = [part for part in answer.partitions if part.name in asked(facts)]
    if time is None:
        return [ok("limits", "the profile sets no walltime; the partition's counts")]
    longest = [part.max_time for part in parts]
    if parts and all(most is not None and time > most for most in longest):
        most = max(most for most in longest if most is not None)
        evidence = f"the profile's time is {format_walltime(time)}, and the partition allows {format_walltime(most)}"
        fix = f'Set time = "{format_walltime(most)}" in the profile, or less.'
        return [fails("limits", Kind.SLURM, evidence, fix)]
    return [ok("limits", f"a walltime of {format_walltime(time)} is allowed")]


def account(facts: Facts) -> Sequence[Finding]:
    """Slurm would take a job with the profile's account, QOS and partition."""
    answer = facts.answer
    trial = answer.reply("trial-none") if answer else None
    if not (answer and trial):
        return [_nothing("account")]
    if (version := answer.reply("version")) and not version.ok:
        return [cannot_tell("account", "sbatch cannot be run")]
    rows = _associations(answer)
    told = "; ".join(_association(row) for row in rows) or "not told"
    if trial.ok:
        return [ok("account", f"sbatch would take a job; associations: {told}")]
    if _away(trial):
        return [cannot_tell("account", trial.words)]
    if _NO_NODES.search(trial.words):
        evidence = f"sbatch says: {trial.words}; the nodes may be down or about to come"
        return [cannot_tell("account", evidence, "On the cluster: sinfo -R; or run this again in a minute.")]
    return [fails("account", Kind.SLURM, f"sbatch would refuse a job: {trial.words}", _account_fix(facts, trial, rows))]


def accounting(facts: Facts) -> Sequence[Finding]:
    """Accounting can be asked how jobs ended."""
    reply = facts.answer.reply("accounting") if facts.answer else None
    if reply is None:
        return [_nothing("accounting")]
    if reply.ok:
        return [ok("accounting", "sacct answers")]
    if _DISABLED in reply.words.lower():
        return [ok("accounting", "off at this site; how a job ended is read from its own files")]
    fix = "Ask the site to start slurmdbd. Jobs run meanwhile; of some it is told later how they ended."
    return [fails("accounting", Kind.AWAY, f"sacct fails: {reply.words}", fix)]


def min_job_age(facts: Facts) -> Sequence[Finding]:
    """Ended jobs stay in the queue's answers for long enough where nothing else remembers them."""
    answer = facts.answer
    if not (answer and answer.config):
        return [_nothing("min-job-age")]
    found = re.match(r"\d+", answer.config.get("MinJobAge", ""))
    if not found:
        return [cannot_tell("min-job-age", "the controller does not tell")]
    age, reply = int(found[0]), answer.reply("accounting")
    remembered = reply is not None and (reply.ok or _DISABLED not in reply.words.lower())
    if remembered or age >= 2 * facts.profile.poll_interval:
        return [ok("min-job-age", f"{age} s" + ("; accounting remembers longer" if remembered else ""))]
    evidence = f"ended jobs are forgotten after {age} s, and there is no accounting"
    return [fails("min-job-age", Kind.HERE, evidence, f"Set poll_interval = {max(1, age // 2)} in the profile.")]


def requeue(facts: Facts) -> Sequence[Finding]:
    """Whether the site starts jobs again by itself; Towline asks for it job by job."""
    answer = facts.answer
    if not (answer and answer.config):
        return [_nothing("requeue")]
    value = answer.config.get("JobRequeue", "")
    said = {"1": "on for all jobs", "0": "off unless a job asks for it, which Towline's do"}.get(value)
    return [ok("requeue", f"JobRequeue is {value}: {said}") if said else cannot_tell("requeue", "not told")]


def gpu_request(facts: Facts) -> Sequence[Finding]:
    """Slurm understands the way in which the profile asks for GPUs."""
    answer, style = facts.answer, facts.profile.gpu_request
    trial = answer.reply(f"trial-{style}") if answer else None
    parts = [part for part in answer.partitions if part.name in asked(facts)] if answer else []
    if parts and not any(part.gpus_per_node for part in parts):
        return [ok("gpu-request", "no GPUs in the partition")]
    if not (answer and trial):
        return [_nothing("gpu-request") if not parts else cannot_tell("gpu-request", "the site names no types of GPUs")]
    if trial.ok:
        return [ok("gpu-request", f"{style} is understood")]
    plain = answer.reply("trial-none")
    if plain and not plain.ok:
        return [cannot_tell("gpu-request", "sbatch refuses any job; see account")]
    good = gpu_styles(answer)
    if not good:
        fix = "Ask the site how GPUs are asked for, or set `partition` in the profile to one that has GPUs."
        return [fails("gpu-request", Kind.SLURM, f"no way to ask for a GPU is taken: {trial.words}", fix)]
    return [
        fails(
            "gpu-request",
            Kind.SLURM,
            f"{style} is refused: {trial.words}",
            f'Set gpu_request = "{good[0]}" in the profile.',
        )
    ]


# --- What other modules use, too ---


def gpu_styles(answer: Answer) -> tuple[str, ...]:
    """The ways to ask for a GPU that sbatch took, the plainest first."""
    return tuple(style for style in _STYLES if (trial := answer.reply(f"trial-{style}")) and trial.ok)


def asked(facts: Facts) -> tuple[str, ...]:
    """The partitions that jobs go to which name none."""
    if facts.profile.partition or not facts.answer:
        return facts.profile.partition
    return tuple(part.name for part in facts.answer.partitions if part.default)


def accounts(answer: Answer) -> tuple[str, ...]:
    """The user's accounts on this cluster."""
    return tuple(dict.fromkeys(row[1] for row in _associations(answer)))


def _nothing(name: str) -> Finding:
    return cannot_tell(name, "Slurm was not reached")


def _slurm(host: str, answer: Answer) -> Finding:
    make = 'Set `setup` in the profile to the line that makes them available: setup = "module load slurm"'
    if not answer.has("slurm"):
        words = answer.complaints.get("no-slurm") or "sbatch was not found"
        return fails("slurm", Kind.CLUSTER, words, make, host=host)
    if missing := answer.all("slurm", "missing"):
        return fails("slurm", Kind.CLUSTER, f"not there: {', '.join(missing)}", make, host=host)
    asked_version = answer.reply("version") or Reply(1)
    if not asked_version.ok:
        return fails("slurm", Kind.CLUSTER, f"sbatch cannot be run: {asked_version.words}", make, host=host)
    version = asked_version.out.strip()
    config = answer.reply("config")
    if config and not config.ok:
        fix = "The controller may be restarting: try again in a while; then ask the site. Jobs that run go on."
        return fails("slurm", Kind.AWAY, f"{version}: the controller does not answer: {config.words}", fix, host=host)
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        fix = "Ask the site for a newer Slurm; Towline needs 20.11."
        return fails("slurm", Kind.CLUSTER, f"{version} is too old", fix, host=host)
    return ok("slurm", f"{version}, {answer.fact('slurm', 'path')}", host=host)


def _described(part: Partition) -> str:
    gpus = f", {part.gpus_per_node} GPUs ({' '.join(part.gpu_types) or 'untyped'})" if part.gpus_per_node else ""
    time = format_walltime(part.max_time) if part.max_time else "unlimited"
    return f"{part.name} ({part.nodes} nodes{gpus}, {time})"


def _away(reply: Reply) -> bool:
    return bool(re.search(r"Unable to contact|timed out|Connection refused", reply.words, re.IGNORECASE))


def _associations(answer: Answer) -> list[list[str]]:
    reply = answer.reply("associations")
    name = answer.config.get("ClusterName", "")
    rows = [line.split("|") for line in reply.out.splitlines()] if reply and reply.ok else []
    return [row for row in rows if len(row) == 5 and row[0].lower() in (name.lower(), "")]


def _association(row: Sequence[str]) -> str:
    part = f" in {row[2]}" if row[2] else ""
    return f"{row[1]}{part} (QOS {row[3] or 'any'})"


def _account_fix(facts: Facts, trial: Reply, rows: Sequence[Sequence[str]]) -> str:
    words, profile = trial.words.lower(), facts.profile
    if "qos" in words:
        allowed = sorted({name for row in rows for name in row[3].split(",") if name})
        return f"Set `qos` in the profile to one of these, or take it away: {', '.join(allowed) or 'ask the site'}"
    if "account" in words:
        known = sorted({row[1] for row in rows})
        if not known:
            return f"Ask the site for an account for {facts.reached[0].answer.fact('login', 'user')}: Slurm knows none."
        wrong = profile.account if profile.account not in known else ""
        return f"{facts.setting('account')} {' or '.join(known)}" + (f" (it is {wrong})." if wrong else ".")
    if "partition" in words:
        return f"{facts.setting('partition')} another; see the check partition."
    return "Ask the site with these words, or change `partition`, `account`, `qos` or `time` in the profile."
