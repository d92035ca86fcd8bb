# Remove jobs, logs of jobs and snapshots of code; never what is in use.
#
# Arguments: the root, the user's setup line, how many seconds a snapshot must not have been asked for, then what to remove:
#   jobs/ID, logs/ID, results/ID or code/SNAPSHOT.
# Output: a line "removed WHAT" or "used WHAT" for each.
# Exit codes: 0; 43 the queue could not be asked, so nothing was removed; 44 the root is missing.

# shellcheck source=src/towline/slurm/scripts/layout.sh
. ./layout.sh
cd "$1" 2>/dev/null || exit 44
export LC_ALL=C
PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/cm/shared/apps/slurm/current/bin
[ -z "$2" ] || eval "$2" >/dev/null 2>&1 </dev/null
fresh=$3
shift 3
alive=$(squeue --noheader --user="$(id -u)" --format=%j) || exit 43
now=$(date +%s)

# Jobs are in the queue under names that contain their ids.
queued() {
    case $alive in *"$1"*) return 0 ;; *) return 1 ;; esac
}

# gone DIRECTORY: it disappears at once, and then bit by bit.
gone() {
    away=${1%/*}/.${1##*/}.removed.$$
    mv -T "$1" "$away" || return
    find "$away" -type d ! -perm -u+w -exec chmod u+w {} +
    rm -rf "$away"
}

for what; do
    name=${what#*/}
    case $what in
    jobs/* | logs/* | results/*)
        if queued "$name"; then
            printf 'used %s\n' "$what"
            continue
        fi
        ;;
    code/*)
        if grep -qs "\"id\": \"$name\"" jobs/*/script/code.json ||
            [ "$((now - $(stat -c %Y "$what" 2>/dev/null || echo 0)))" -lt "$fresh" ]
        then
            printf 'used %s\n' "$what"
            continue
        fi
        ;;
    esac
    case $what in
    jobs/*)
        if [ -f "$what/script/layout" ]; then forget_layout . "$what"; fi
        if [ -d "$what" ]; then gone "$what" || continue; fi
        rm -f "results/$name"
        ;;
    results/*)
        if [ -d "jobs/$name/results" ]; then
            gone "jobs/$name/results" || continue
            mkdir "jobs/$name/results"
        fi
        ;;
    logs/*) find "jobs/$name/attempts" -type f \( -name '*.out' -o -name '*.err' \) -exec rm -f {} + ;;
    code/*)
        if [ -d "$what" ]; then
            chmod u+w "$what"
            gone "$what" || continue
        fi
        ;;
    *) continue ;;
    esac
    printf 'removed %s\n' "$what"
done
