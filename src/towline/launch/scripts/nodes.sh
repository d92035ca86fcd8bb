# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor and script/settings set them
# shellcheck disable=SC2034  # the supervisor reads them
# Read by the supervisor: what runs once on each node of the job, outside of any container, and the check of the GPUs.
#
# tl_heal_groups has a word for each group of nodes: GROUP:NODES:GPUS. GROUP is the number of a component of a heterogeneous
# job, and empty for any other; GPUS are those that each node must have.

# --- Which nodes there are ---

# hosts_of GROUP: the names of its nodes, one a line.
hosts_of() {
    tl_list=${SLURM_JOB_NODELIST:-}
    [ -z "$1" ] || eval "tl_list=\${SLURM_JOB_NODELIST_HET_GROUP_$1:-}"
    scontrol show hostnames "$tl_list" 2>/dev/null || spread_names "$tl_list"
}

# spread_names LIST: gpu[08-10],login1 as names, one a line, where nodes may not run scontrol.
spread_names() {
    printf '%s\n' "$1" | awk '
        function spread(head, text,    open, shut, ranges, count, i, ends, number) {
            open = index(text, "[")
            shut = index(text, "]")
            if (!open || !shut) { if (head text != "") print head text; return }
            count = split(substr(text, open + 1, shut - open - 1), ranges, ",")
            head = head substr(text, 1, open - 1)
            for (i = 1; i <= count; i++) {
                if (split(ranges[i], ends, "-") < 2) ends[2] = ends[1]
                for (number = ends[1] + 0; number <= ends[2] + 0; number++)
                    spread(head sprintf("%0" length(ends[1]) "d", number), substr(text, shut + 1))
            }
        }
        {
            within = part = ""
            for (at = 1; at <= length($0); at++) {
                letter = substr($0, at, 1)
                if (letter == "[") within = 1
                if (letter == "]") within = ""
                if (letter == "," && !within) { spread("", part); part = ""; continue }
                part = part letter
            }
            spread("", part)
        }'
}

# job_hosts: the names of all nodes of the job, through its components.
job_hosts() {
    for tl_entry in $tl_heal_groups; do
        hosts_of "${tl_entry%%:*}"
    done
}

# only_node: the node of a job that has one.
only_node() {
    [ -z "${SLURM_HET_SIZE:-}" ] || return 0
    case ${SLURM_JOB_NODELIST:-,} in *[,[]*) ;; *) printf '%s' "$SLURM_JOB_NODELIST" ;; esac
}

# --- Running something on each ---

# on_nodes WORD SECONDS SCRIPT…: runs a script of the job's once on each node of a group, beside what runs there. It asks for no
# memory: the ranks have all of the job's, and --overlap does not share that (seen on 22.05).
on_nodes() (
    tl_group=${1%%:*} tl_count=${1#*:}
    tl_count=${tl_count%%:*} tl_seconds=$2 tl_program=$TOWLINE_JOB_DIR/script/$3
    shift 3
    [ -z "$tl_group" ] || forget_first_component
    unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE
    within "$tl_seconds" srun ${tl_group:+"--het-group=$tl_group"} --overlap --mem=0 "--nodes=$tl_count" "--ntasks=$tl_count" \
        --ntasks-per-node=1 --kill-on-bad-exit=0 /bin/sh "$tl_program" "$@" </dev/null
)

# The batch script's variables are about the first component, and srun would ask for the same in another one.
forget_first_component() {
    unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_CPUS_PER_TASK SLURM_CPUS_PER_GPU SLURM_GPUS \
        SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK SLURM_GPUS_PER_SOCKET SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_NPROCS \
        SLURM_TRES_PER_TASK SLURM_CONSTRAINT SLURM_PARTITION SLURM_JOB_PARTITION
}

# --- The GPUs ---

# check_nodes: asks every node for its GPUs. Returns 1, and sets which, when a node does not have what was asked for. One that
# does not even answer while others do is bad, too.
check_nodes() {
    tl_nodes='' tl_evidence=''
    rm -rf "$tl_own_dir/checks"
    for tl_entry in $tl_heal_groups; do
        [ "${tl_entry##*:}" -gt 0 ] || continue
        mkdir -p "$tl_own_dir/checks" 2>/dev/null || return 0
        on_nodes "$tl_entry" 180 check "${tl_entry##*:}" "$tl_own_dir/checks" >"$tl_own_dir/checks/.said" 2>&1
        name_silent "${tl_entry%:*}"
    done
    for tl_node in "$tl_own_dir"/checks/*; do
        tl_said=ok
        [ ! -f "$tl_node" ] || read -r tl_said <"$tl_node"
        [ "$tl_said" != ok ] || continue
        tl_nodes=$(joined "$tl_nodes" "${tl_node##*/}")
        tl_evidence="${tl_node##*/}: $tl_said"
    done
    [ -z "$tl_nodes" ]
}

# name_silent GROUP:NODES: writes the answer of nodes that gave none, where those that did and they are all the group's; names
# that do not fit say nothing.
name_silent() {
    tl_answers=0 tl_silent=''
    for tl_node in $(hosts_of "${1%%:*}"); do
        if [ -e "$tl_own_dir/checks/$tl_node" ]; then
            tl_answers=$((tl_answers + 1))
        else
            tl_silent="$tl_silent $tl_node"
        fi
    done
    [ "$tl_answers" -gt 0 ] || return 0
    # shellcheck disable=SC2086  # names of nodes
    set -- "${1#*:}" $tl_silent
    [ $((tl_answers + $# - 1)) -eq "$1" ] || return 0
    shift
    for tl_node; do
        printf 'no program starts there\n' >"$tl_own_dir/checks/$tl_node"
    done
}

# check_together: Slurm puts back only that component of a heterogeneous job that has lost its node (seen on 22.05). The others run
# on, idle, and their walltime with them; with more than a tenth of it gone the job had better begin anew as a whole.
check_together() {
    [ -n "${SLURM_HET_SIZE:-}" ] && [ "$tl_number" -gt 1 ] && [ -n "$tl_heal_limit" ] || return 0
    tl_apart=$(within 30 squeue --noheader "--jobs=$SLURM_JOB_ID" --states=RUNNING --format=%M </dev/null 2>/dev/null | seconds_apart)
    [ $((tl_apart * 10)) -gt "$tl_heal_limit" ] || return 0
    tl_evidence="Slurm had started only a part of the components again; the others had been running for $tl_apart s more"
    say "the command was not started: $tl_evidence"
    tl_srun_code=''
    decide failed torn 1
    return 1
}

# seconds_apart: from times as squeue prints them (`MM:SS`, `HH:MM:SS`, `D-HH:MM:SS`; squeue(1), %M) how far the longest is from
# the shortest.
seconds_apart() {
    awk -F '[-:]' '
        NF > 1 {
            all = $NF + 60 * $(NF - 1) + (NF > 2 ? 3600 * $(NF - 2) : 0) + (NF > 3 ? 86400 * $(NF - 3) : 0)
            if (!n++ || all < least) least = all
            if (all > most) most = all
        }
        END { print most - least }'
}

# check_first: before the command, so that a bad node costs seconds.
check_first() {
    check_nodes && return 0
    say "the command was not started: $tl_evidence"
    tl_srun_code=''
    decide failed check 1
    return 1
}

# check_again: after a failure, whatever the program has made of it. A job that is ended anyway has no time for it.
check_again() {
    [ -z "$tl_told" ] && [ -z "$tl_step_roles" ] || return 1
    tl_kept=$tl_evidence tl_kept_nodes=$tl_nodes
    if check_nodes; then
        tl_evidence=$tl_kept tl_nodes=$tl_kept_nodes
        return 1
    fi
    tl_class=node tl_retry=yes
}
