#!/bin/sh
# stage.sh ROOT JOB ATTEMPT TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…: check, write the job directory, submit.
# ./required is read by required.sh; ./files holds the job directory's files. Nothing is changed before all checks have
# passed.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/attempt.sh
. ./attempt.sh
# shellcheck source=src/towline/slurm/scripts/own.sh
. ./own.sh
# shellcheck source=src/towline/slurm/scripts/required.sh
. ./required.sh
# shellcheck source=src/towline/slurm/scripts/uses.sh
. ./uses.sh
# shellcheck source=src/towline/slurm/scripts/layout.sh
. ./layout.sh

# check_root: the root, and jobs/ in it as a directory of our own.
check_root() {
    if ! { [ -d "$1/results" ] || mkdir -p "$1/results" 2>./make.err; } ||
        { [ ! -e "$1/jobs" ] && ! mkdir "$1/jobs" 2>./make.err && [ ! -d "$1/jobs" ]; }
    then
        grep -qi -e 'no space left' -e 'quota exceeded' ./make.err && write_failed ./make.err
        cat ./make.err >&2
        exit 41
    fi
    check_own "$1/jobs"
    if [ ! -w "$1/jobs" ]; then
        printf '%s cannot be written to\n' "$1/jobs" >&2
        exit 41
    fi
}

# place DIR: the directory appears whole or not at all; a call that was cut off leaves only a hidden name.
place() {
    if [ ! -d "$1" ]; then
        tl_new=${1%/*}/.${1##*/}.$tl_host.$$
        trap 'rm -rf "$tl_new"' EXIT
        trap 'exit 45' HUP INT TERM
        { mkdir "$tl_new" "$tl_new/attempts" "$tl_new/results" "$tl_new/slurm-logs" && cp -R ./files/. "$tl_new"; } \
            2>./make.err || write_failed ./make.err
        # Another call for the same job may have been faster; its directory has the same content.
        if mv -T "$tl_new" "$1" 2>./make.err; then
            tl_placed=yes
        else
            [ -d "$1" ] || write_failed ./make.err
            rm -rf "$tl_new"
        fi
        trap - EXIT HUP INT TERM
    fi
    [ -n "$tl_placed" ] || check_own "$1"
}

# link_results ROOT JOB: <root>/results/<job> leads to the job's results.
link_results() {
    [ -h "$1/results/$2" ] || ln -s "../jobs/$2/results" "$1/results/$2" 2>./make.err || [ -h "$1/results/$2" ] ||
        write_failed ./make.err
}

# lay_out ROOT JOB: what else the job wants made (launch/conventions.py). Names in there hold no blanks.
lay_out() {
    [ -f "$1/jobs/$2/script/layout" ] || return 0
    while read -r tl_kind tl_path tl_target; do
        case /$tl_path/ in */../*) continue ;; esac
        case $tl_kind in
        folder) mkdir -p "$1/jobs/$2/$tl_path" 2>./make.err || write_failed ./make.err ;;
        link)
            [ -d "$1/${tl_path%/*}" ] || mkdir "$1/${tl_path%/*}" 2>./make.err || write_failed ./make.err
            [ -h "$1/$tl_path" ] || ln -s "$tl_target" "$1/$tl_path" 2>./make.err || write_failed ./make.err
            ;;
        esac
    done <"$1/jobs/$2/script/layout"
}

# take_back ROOT JOB: a job that this call placed and Slurm refused, or that had no room, leaves nothing behind.
# Somebody else may take the attempt over until the directory has another name; then it gets its own back.
take_back() {
    [ -n "$tl_placed" ] && [ ! -e "$1/jobs/$2/attempts/1/submitter.2" ] || return 0
    tl_gone=$1/jobs/.$2.refused.$tl_mark
    mv -T "$1/jobs/$2" "$tl_gone" || return 0
    if [ -e "$tl_gone/attempts/1/submitter.2" ] && mv -T "$tl_gone" "$1/jobs/$2"; then
        return 0
    fi
    rm -f "$1/results/$2"
    [ ! -f "$tl_gone/script/layout" ] || forget_layout "$1" "$tl_gone"
    rm -rf "$tl_gone"
}

# mark_uses TOKEN: lines of ./files/script/images have a third word where a group shares the cache.
mark_uses() {
    while read -r tl_reference tl_image tl_place; do
        [ -z "$tl_reference" ] || [ -z "$tl_place" ] || mark_use "$tl_image" "$1"
    done <./files/script/images
}

tl_root=$1 tl_job=$2 tl_placed=
shift 2
find_slurm
check_required
check_root "$tl_root"
place "$tl_root/jobs/$tl_job"
trap 'case $? in 43 | 44 | 45 | 48) take_back "$tl_root" "$tl_job" ;; esac' EXIT
# What it needs may have been taken away until the directory said that this job needs it (images-remove.sh, remove.sh).
[ ! -f ./files/script/images ] || mark_uses "$2"
[ ! -f ./files/script/needs ] || check_required
link_results "$tl_root" "$tl_job"
lay_out "$tl_root" "$tl_job"
submit_attempt "$tl_root/jobs/$tl_job" "$@"
