# Who uses what lies below a root, which is the working directory.

LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/cm/shared/apps/slurm/current/bin
fresh=86400 # seconds in which a job, or a snapshot of code, may be on its way to Slurm
now=$(date +%s) alive='' recent=''

# age PATH: seconds since it changed.
age() { echo "$((now - $(stat -c %Y "$1" 2>/dev/null || echo 0)))"; }

# ask_queue: sets `alive` to the names of the user's jobs; a job's name has its id in it. Fails when Slurm does not say.
ask_queue() { alive=$(squeue --noheader --all --user="$(id -u)" --format=%j </dev/null); }

queued() {
    case $alive in *"$1"*) return 0 ;; *) return 1 ;; esac
}

# newest_attempt JOB: sets `attempt` to its directory. There may be thousands of jobs, and a process for each takes its time.
newest_attempt() {
    newest=1
    while [ -d "$1/attempts/$((newest + 1))" ]; do newest=$((newest + 1)); done
    attempt=$1/attempts/$newest
}

# look: sets `alive` and `recent`, the jobs that may be on their way to Slurm.
look() {
    now=$(date +%s)
    ask_queue || return
    recent=" $(find jobs -mindepth 1 -maxdepth 1 -name '[a-z0-9]*' -newermt "@$((now - fresh))" -printf '%f ' 2>/dev/null)"
}

# may_live ID: the job is in the queue, or may be on its way there.
may_live() {
    queued "$1" && return
    case $recent in *" $1 "*) ;; *) return 1 ;; esac
    newest_attempt "jobs/$1"
    [ ! -e "$attempt/end" ] && [ ! -e "jobs/$1/cancelled" ]
}

# needs_of ID: the paths that a job needs, without symbolic links.
needs_of() {
    [ -f "jobs/$1/script/needs" ] || return 0
    while IFS= read -r path; do readlink -m -- "$path"; done <"jobs/$1/script/needs"
}

# needs_elsewhere: the same of the user's jobs below other roots, as far as Slurm has them: the command of a job (`%o`) is
# its batch script.
needs_elsewhere() {
    squeue --noheader --all --user="$(id -u)" --format=%o </dev/null 2>/dev/null | sed -n 's|^\(/.*/jobs/[^/]*\)/script/batch.*|\1|p' |
        sort -u | while IFS= read -r job; do
        [ ! -f "$job/script/needs" ] || while IFS= read -r path; do readlink -m -- "$path"; done <"$job/script/needs"
    done
}

# elsewhere PLACE: it is a directory in which jobs stage data, and not the root's own.
elsewhere() { [ -d "$1" ] && [ "$(readlink -m -- "$1")" != "$(readlink -m staged)" ]; }

# is_copy PATH: a whole copy of data that a job of the user's has staged.
is_copy() {
    [ -d "$1" ] && [ ! -h "$1" ] && [ -O "$1" ] && [ ! -h "$1/note" ] && [ -f "$1/note" ] &&
        grep -q '^uri=' "$1/note" && grep -q '^slurm=' "$1/note"
}

# read_snapshot ID: sets `snapshot` to the one that a job started with. The job can write there itself.
read_snapshot() {
    snapshot=-
    [ -f "jobs/$1/script/code.json" ] || return 0
    while read -r line; do
        case $line in '"id": "'*) line=${line#*: ?} && snapshot=${line%%\"*} && break ;; esac
    done <"jobs/$1/script/code.json"
    case $snapshot in '' | *[!0-9a-f]*) snapshot=- ;; esac
}

# mentions NAMES: lines "JOB NAME" for each name of that file, one a line, that a job's spec or command has in it.
mentions() {
    [ -s "$1" ] || return 0
    find jobs -mindepth 2 -maxdepth 5 -type f ! -name supervisor ! -name prelude \
        \( -path 'jobs/[a-z0-9]*/job.json' -o -path 'jobs/[a-z0-9]*/script/*' \) -print0 2>/dev/null |
        xargs -0 -r grep -aHoF -f "$1" -- 2>/dev/null | sed 's|^jobs/\([^/]*\)/[^:]*:|\1 |' | sort -u
}

# code_mentions ID NAMES: the same for the code of a job.
code_mentions() {
    read_snapshot "$1"
    [ "$snapshot" != - ] && [ -s "$2" ] || return 0
    grep -raohF -f "$2" -- "code/$snapshot" 2>/dev/null | sort -u | sed "s|^|$1 |"
}

# tree_age PATH: seconds since a directory in it, or the file itself, was changed; what was pushed has times of its own.
tree_age() {
    if [ -d "$1" ] && [ ! -h "$1" ]; then
        last=$(find "$1" -type d -printf '%T@\n' | sort -n | tail -n 1)
    else
        last=$(stat -c %Z "$1")
    fi
    echo "$((now - ${last%.*}))"
}

# prepared_by DIR: what the names of the Slurm jobs that prepare something there begin with; `/`, which is in no name, for none.
prepared_by() {
    job_name=$(sed -n '/^#SBATCH --job-name=\(.*-a\)[0-9]*$/{s//\1/p;q;}' "$1/script/batch-$newest" 2>/dev/null)
    printf '%s' "${job_name:-/}"
}
