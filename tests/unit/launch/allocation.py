"""An allocation without Slurm: the real scripts, run by real shells, with stand-ins for `srun` and `scontrol` only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from towline.launch.files import LaunchPlan, job_files
from towline.launch.records import EndRecord, parse_end, parse_fields
from towline.launch.roles import role_files
from towline.models.spec import JobSpec, Resources

SHELLS = tuple(
    shell for shell in (("dash",), ("bash", "--posix"), ("busybox", "sh")) if shutil.which(shell[0]) is not None
)
JOB_ID = "m3k9w2x4p"

# Starts the tasks of a step as srun does, and like `srun --kill-on-bad-exit=1` ends the rest when one fails and
# reports the highest code. As proctrack/cgroup does, it signals the tasks themselves and not what they started, and
# kills what is left of a task that ended.
SRUN = """\
import os, re, signal, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
command = sys.argv[sys.argv.index("/bin/sh"):]
if "SLURM_STUB_FAILS" in os.environ:
    print("slurmstepd: error: pyxis: failed to create container filesystem", file=sys.stderr)
    sys.exit(int(os.environ["SLURM_STUB_FAILS"]))
per_node, tasks = int(options["ntasks-per-node"]), int(options["ntasks"])
if os.environ["SLURM_EXPORT_ENV"] != "ALL":
    sys.exit("the step would have no environment")
running, told, APPEND = {}, [], os.O_WRONLY | os.O_CREAT | os.O_APPEND
def stop(number, frame):
    told.append(number)
    if number == signal.SIGTERM:  # the real one has slurmctld end the step of its number
        open(os.environ["TOWLINE_JOB_DIR"] + "/step-ended", "a").close()
    for pid in list(running):
        os.kill(pid, number)
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, stop)
for rank in range(int(os.environ.get("SLURM_STUB_TASKS", tasks))):
    place = {"SLURM_PROCID": str(rank), "SLURM_NODEID": str(rank // per_node), "SLURM_LOCALID": str(rank % per_node)}
    if "nodelist" in options:
        place["SLURMD_NODENAME"] = options["nodelist"].split(",")[rank // per_node]
    letters = {"%%": "%", "%t": str(rank), "%n": place["SLURM_NODEID"], "%N": f"node{5 + rank // per_node}"}
    files = [
        (os.POSIX_SPAWN_OPEN, fd, re.sub("%[%tnN]", lambda found: letters[found[0]], options[name]), APPEND, 0o600)
        for fd, name in ((1, "output"), (2, "error")) if name in options
    ]
    pid = os.posix_spawn(SHELL[0], [*SHELL, *command[1:]], {**os.environ, **place}, setpgroup=0, file_actions=files)
    running[pid] = rank
    for number in told:
        os.kill(pid, number)
worst = 0
while running:
    pid, status = os.wait()
    rank = running.pop(pid)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    code = os.waitstatus_to_exitcode(status)
    code = code if code >= 0 else 128 - code
    if code and not worst:
        stop(signal.SIGTERM, None)
    worst = max(worst, code)
sys.exit(int(os.environ.get("SLURM_STUB_SAYS", worst)))
"""

SCONTROL = """\
#!/bin/sh
case $1 in
show)
    [ "$2" = hostnames ] || exit
    case $3 in *[[]* | '') printf '%s\\n' node5 node6 node7 node8 ;; *) printf '%s\\n' "$3" | tr ',' '\\n' ;; esac
    ;;
*)
    printf 'scontrol %s\\n' "$*" >>"$TOWLINE_JOB_DIR/asked"
    [ -n "${STUB_REQUEUE:-}" ]
    ;;
esac
"""

SINFO = """\
#!/bin/sh
[ -n "${STUB_NODES:-}" ] && printf '%s\\n' $STUB_NODES
"""

# Takes jobs when it is told which id they get.
SBATCH = """\
#!/bin/sh
case $* in *--test-only*)
    exec >&2
    [ -z "${STUB_FORBIDDEN:-}" ] || { echo 'Batch job submission failed: Access/permission denied' && exit 1; }
    [ -z "${STUB_FULL:-}" ] || { echo 'allocation failure: Requested node configuration is not available' && exit 1; }
    echo 'sbatch: Job 43 to start at 2026-11-30T14:08:58 using 8 processors on nodes node6 in partition batch'
    exit 0
    ;;
esac
for word in "$@"; do printf '%s\\n' "$word"; done >sbatch.words
[ -n "${STUB_SBATCH:-}" ] && echo "$STUB_SBATCH" && exit
echo 'sbatch: error: Batch job submission failed: Access/permission denied' >&2
exit 1
"""


@dataclass(frozen=True)
class Allocation:
    """One job directory and the shell that its scripts run in."""

    shell: tuple[str, ...]
    directory: Path
    tools: Path

    def place(self, *, nodes: int = 1, tasks_per_node: int = 1, **fields: Any) -> Allocation:
        """Write the files of a job that runs on the node."""
        resources = Resources(nodes=nodes, tasks_per_node=tasks_per_node)
        return self.place_plan(JobSpec.build(resources=resources, **fields))

    def place_text(self, text: str, *, nodes: int = 1, tasks_per_node: int = 1, **fields: Any) -> Allocation:
        """Like `place`, for a command given as shell text."""
        resources = Resources(nodes=nodes, tasks_per_node=tasks_per_node)
        return self.place_plan(JobSpec.build(**{"shell": text, **fields}, resources=resources))

    def place_plan(self, spec: JobSpec, container: tuple[str, ...] = (), **launch: Any) -> Allocation:
        plan = LaunchPlan(spec=spec, job_id=JOB_ID, directory=str(self.directory), container=container, **launch)
        for name, content in (role_files(plan) if spec.roles else job_files(plan)).items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.attempt(1).mkdir(parents=True, exist_ok=True)
        return self

    def attempt(self, number: int) -> Path:
        return self.directory / "attempts" / str(number)

    def environment(self, slurm_id: int = 42, **more: str) -> dict[str, str]:
        return {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "TOWLINE_JOB_DIR": str(self.directory),
            "TOWLINE_JOB_ID": JOB_ID,
            "TOWLINE_ATTEMPT": "1",
            "SLURM_JOB_ID": str(slurm_id),
            "SLURM_JOB_NAME": f"job-{JOB_ID}-a1",
            "SLURM_JOB_NODELIST": "node[5-6]",
            "SLURM_EXPORT_ENV": "NONE",
            **more,
        }

    def command(self) -> list[str]:
        return [*self.shell, str(self.directory / "script/supervisor")]

    def start(self, slurm_id: int = 42, **more: str) -> subprocess.Popen[bytes]:
        """Start the batch script's work, with the first attempt's logs opened as Slurm opens them."""
        with (self.attempt(1) / "main.out").open("ab") as out, (self.attempt(1) / "main.err").open("ab") as err:
            return subprocess.Popen(
                self.command(), env=self.environment(slurm_id, **more), stdout=out, stderr=err, cwd=self.directory
            )

    def run(self, slurm_id: int = 42, **more: str) -> int:
        """The exit code of the batch script."""
        return self.start(slurm_id, **more).wait(timeout=60)

    def out(self, number: int = 1) -> str:
        return (self.attempt(number) / "main.out").read_text()

    def err(self, number: int = 1) -> str:
        return (self.attempt(number) / "main.err").read_text()

    def end(self, number: int = 1) -> EndRecord | None:
        return parse_end((self.attempt(number) / "end").read_text())

    def fields(self, name: str, number: int = 1) -> dict[str, str]:
        return parse_fields((self.attempt(number) / name).read_text())

    def exits(self, number: int = 1) -> dict[str, str]:
        """The ranks' records without the nodes."""
        files = (self.attempt(number) / "exit").iterdir()
        return {path.name: " ".join(path.read_text().split()[:2]) for path in files}

    def twin(self, name: str) -> Allocation:
        """Another empty job directory beside this one, with the same shell and tools."""
        return replace(self, directory=self.directory.parent / name)


def make_tools(folder: Path, shell: tuple[str, ...]) -> Path:
    """Put the stand-ins into the folder."""
    folder.mkdir()
    path = shutil.which(shell[0])
    script = f"#!{sys.executable}\nSHELL = {[path, *shell[1:]]!r}\n{SRUN}"
    for name, text in (("srun", script), ("scontrol", SCONTROL), ("sinfo", SINFO), ("sbatch", SBATCH)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder
