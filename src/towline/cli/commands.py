"""The commands of `towline`, in the order that help shows them. Nothing here may be slow to import."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("towline.cli.run:run", "Run a command in a container on the cluster and follow it."),
    "plan": ("towline.cli.plan:plan", "Show what a run would do, with every check; change nothing."),
    "review": ("towline.cli.review:review", "Look at all that a job needs and give it a hash to confirm."),
    "confirm": ("towline.cli.review:confirm", "Submit exactly what was reviewed."),
    "ps": ("towline.cli.jobs:ps", "List jobs that have not ended, or all of them."),
    "status": ("towline.cli.status:status", "Show all that is known about jobs."),
    "watch": ("towline.cli.events:watch", "Print one line for each job at regular times, until all have ended."),
    "events": ("towline.cli.events:events", "Show what has happened to jobs, and go on as things happen."),
    "logs": ("towline.cli.logs:logs", "Print the logs of jobs, once or as they grow."),
    "why": ("towline.cli.why:why", "Say why jobs ended, with the line that shows it, or why they wait."),
    "exec": ("towline.cli.inside:exec_", "Run a command inside a running job, in its container."),
    "shell": ("towline.cli.inside:shell", "Open a shell inside a running job, or in an allocation of its own."),
    "gpus": ("towline.cli.inside:gpus", "Show what the GPUs of running jobs do."),
    "cancel": ("towline.cli.jobs:cancel", "Cancel jobs for good."),
    "pause": ("towline.cli.pause:pause", "Hold jobs, or have them stop and wait."),
    "resume": ("towline.cli.pause:resume", "Let paused jobs go on."),
    "wait": ("towline.cli.jobs:wait", "Wait until jobs have ended; exit with the job's code."),
    "adopt": ("towline.cli.adopt:adopt", "Find your jobs on the cluster and take them over, with their history."),
    "results": ("towline.cli.results:results", "List a job's results, or bring them home."),
    "push": ("towline.cli.transfer:push", "Bring files to the cluster's shared file system."),
    "pull": ("towline.cli.transfer:pull", "Bring files of the cluster's shared file system home."),
    "rm": ("towline.cli.clean:rm", "Remove jobs that have ended, with logs and results."),
    "gc": ("towline.cli.clean:gc", "Show what could be removed on the cluster, or remove it."),
    "notify": ("towline.cli.notify:notify", "Show who is told when jobs end, and try it."),
    "spec": ("towline.cli.spec:spec", "Check descriptions of jobs, and print their schema."),
    "setup": ("towline.cli.setup:setup", "Describe a cluster: a few questions, then everything is checked."),
    "doctor": ("towline.cli.doctor:doctor", "Check everything a job needs, and say how to mend what is broken."),
    "registry": ("towline.cli.registry:registry", "Give the cluster credentials for image registries."),
    "images": ("towline.cli.images:images", "List the files made of registries' images, make one, or take some away."),
    "config": ("towline.cli.config:config", "Show what is configured and where it came from."),
    "trust": ("towline.cli.config:trust", "Trust a project's towline.toml as it is now."),
    "tao": ("towline.cli.tao:tao", "Run scripts that are written for NVIDIA's TAO SDK."),
    "lab": ("towline.cli.lab:lab", "Bring a real Slurm cluster up on this machine to try things on."),
    "version": ("towline.cli.version:version", "Print the version."),
}
"""Name → where the command is (`module:attribute`) and its summary."""

INTRODUCTION = "Run containerised GPU jobs on Slurm clusters from any machine that can ssh to a login node."

EXAMPLES = (
    "towline lab up",
    "towline run --nodes 2 --gpus-per-node 8 --time 4h -- python train.py",
    "towline ps",
)


def overview() -> str:
    """The help of `towline` itself."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{summary}" for name, (_, summary) in COMMANDS.items())
    examples = "\n".join(f"  {line}" for line in EXAMPLES)
    return (
        f"Usage: towline COMMAND [OPTIONS] ...\n\n  {INTRODUCTION}\n\nCommands:\n{commands}\n\n"
        "Options:\n  --version   Print the version.\n"
        "  -h, --help  Print this help; `towline COMMAND --help` explains a command.\n\n"
        f"Examples:\n{examples}\n"
    )
