#!/bin/sh
# inside.sh DIR TASK ID ROLE RANK NODE NAME: prepares that `command` runs beside a rank of a running job, in its container, in
# a step of its own. TASK, ROLE, RANK and NODE may be empty: then the lowest rank that runs is meant. Prints the path of a
# script that does it when a login host runs it, with `pty` for a terminal, and ends with the command's code.
# Files here: enter, inner and command, see launch/inside.py. They are brought to DIR/inside/NAME, which goes at the end.
# Exit codes: 60 Slurm does not run the job; 61 no such rank runs; 45 a file could not be written.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/strangers.sh
. ./strangers.sh
# shellcheck source=src/towline/slurm/scripts/running.sh
. ./running.sh

tl_dir=$1 tl_own=${2:+/task-$2} tl_id=$3 tl_role=$4 tl_rank=$5 tl_node=$6 tl_here=$1/inside/$7
find_slurm

! is_stranger "$tl_id" "$tl_dir" || exit 60
running "$tl_id" >./parts
[ -s ./parts ] || exit 60

tl_attempt=
for tl_each in "$tl_dir"/attempts/*; do
    tl_each=${tl_each##*/}
    case $tl_each in '' | *[!0-9]*) continue ;; esac
    if [ -e "$tl_dir/attempts/$tl_each$tl_own/start" ] && [ "$tl_each" -gt "${tl_attempt:-0}" ]; then tl_attempt=$tl_each; fi
done
[ -n "$tl_attempt" ] || exit 61
tl_base=$tl_dir/attempts/$tl_attempt$tl_own

# consider FILE ROLE: takes the rank, if it is one that is meant. The prelude writes the files, the job can, too.
consider() {
    tl_found=${1##*/.}
    case $tl_found in '' | *[!0-9]*) return ;; esac
    if [ -n "$tl_rank" ] && [ "$tl_rank" -ne "$tl_found" ]; then return; fi
    read -r tl_pid tl_name tl_nodeid tl_localid _ <"$1" || return
    case $tl_pid$tl_nodeid$tl_localid in '' | *[!0-9]*) return ;; esac
    case $tl_name in '' | -* | *[!A-Za-z0-9_.-]*) return ;; esac
    if [ -n "$tl_node" ] && [ "$tl_node" != "$tl_name" ]; then return; fi
    if [ -z "$tl_lowest" ] || [ "$tl_found" -lt "$tl_lowest" ]; then
        tl_lowest=$tl_found tl_place="$tl_pid $tl_name $tl_nodeid $tl_localid" tl_of=$2
    fi
}

tl_lowest='' tl_place='' tl_of=''
for tl_exits in "$tl_base/exit" "$tl_base"/roles/*/exit; do
    tl_name=${tl_exits#"$tl_base"} tl_name=${tl_name#/roles/} tl_name=${tl_name%exit} tl_name=${tl_name%/}
    if [ -n "$tl_role" ] && [ "$tl_role" != "$tl_name" ]; then continue; fi
    for tl_file in "$tl_exits"/.[0-9]*; do
        [ ! -f "$tl_file" ] || consider "$tl_file" "$tl_name"
    done
    [ -z "$tl_lowest" ] || break
done
[ -n "$tl_lowest" ] || exit 61
# shellcheck disable=SC2086  # words without blanks
set -- $tl_place

# group_of NODE: sets tl_job, and tl_group for a node of a heterogeneous job's component.
group_of() {
    while read -r tl_job tl_group _ tl_nodes <&3; do
        [ "$tl_group" != - ] || break
        ! scontrol show hostnames "$tl_nodes" </dev/null 2>/dev/null | grep -qxF "$1" || return 0
    done 3<./parts
    tl_group=
}

group_of "$2"
tl_step=$tl_dir/script${tl_of:+/roles/$tl_of}/step tl_container=
if grep -q "^    'container'" "$tl_step"; then tl_container=yes; fi
{
    mkdir -p "$tl_here" && cp enter inner command "$tl_here" && cat >"$tl_here/place" <<END
in_job=$tl_job in_group=$tl_group in_pid=$1 in_node=$2 in_nodeid=$3 in_localid=$4 in_rank=$tl_lowest in_role=$tl_of
in_attempt=$tl_attempt in_task=${tl_own#/task-} in_container=$tl_container
END
} || exit 45
for tl_name in PATH LD_LIBRARY_PATH SLURM_CONF; do
    eval "tl_value=\${$tl_name-}"
    # shellcheck disable=SC2154  # eval sets it
    [ -z "$tl_value" ] || printf "export %s='%s'\n" "$tl_name" "$(printf '%s' "$tl_value" | sed "s/'/'\\\\''/g")"
done >"$tl_here/tools" || exit 45
# An explicit list: the environment of the login host has no business in the job. The rank's own is taken over by `inner`.
cat >"$tl_here/go" <<'END' || exit 45
here=${0%/*}
. "$here/tools"
. "$here/place"
pty=
[ "${1-}" != pty ] || pty=--pty
trap 'rm -rf "$here"' EXIT
trap 'exit $((128 + 1))' HUP
trap 'exit $((128 + 15))' TERM
srun --overlap --jobid="$in_job" ${in_group:+"--het-group=$in_group"} --nodelist="$in_node" --nodes=1 --ntasks=1 --mpi=none --chdir=/ $pty \
    --export=HOME,USER,LOGNAME,SHELL,TERM,LANG,PATH /bin/sh "$here/enter"
exit $?
END
printf '%s\n' "$tl_here/go"
