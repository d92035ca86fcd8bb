# Say what lies below a root: jobs, snapshots of code, and which jobs Slurm still has.
#
# Arguments: the root, the user's setup line.
# Output: lines "job ID AGE OVER SNAPSHOT" (seconds since its last attempt ended, or since it changed; 1 when that attempt
#   wrote its end; its snapshot or "-"), "code SNAPSHOT AGE" (since it was last asked for), "kib N PATH" and
#   "inodes N PATH" for each, "alive NAME" for each job of the user's in the queue, and at last "whole" when the queue told.
# Exit codes: 0; 44 the root is missing.

cd "$1" 2>/dev/null || exit 44
export LC_ALL=C
PATH=$PATH:/usr/bin:/bin:/usr/local/bin:/opt/slurm/bin:/cm/shared/apps/slurm/current/bin
[ -z "$2" ] || eval "$2" >/dev/null 2>&1 </dev/null
now=$(date +%s)

for job in jobs/[a-z0-9]*/; do
    job=${job%/}
    [ -d "$job/attempts" ] || continue
    newest=1
    while [ -d "$job/attempts/$((newest + 1))" ]; do newest=$((newest + 1)); done
    over=0 seen=$job
    if [ -e "$job/attempts/$newest/end" ]; then over=1 seen=$job/attempts/$newest/end; fi
    snapshot=$(sed -n 's/^ *"id": "\([0-9a-f]*\)",*$/\1/p' "$job/script/code.json" 2>/dev/null)
    printf 'job %s %s %s %s\n' "${job#jobs/}" "$((now - $(stat -c %Y "$seen")))" "$over" "${snapshot:--}"
done
for code in code/[0-9a-f]*/; do
    code=${code%/}
    [ -d "$code" ] && printf 'code %s %s\n' "${code#code/}" "$((now - $(stat -c %Y "$code")))"
done
measured() {
    find jobs code -mindepth 1 -maxdepth 1 -type d -name '[a-z0-9]*' -print0 2>/dev/null | sort -z |
        xargs -0 -r du "$@" 2>/dev/null
}
measured -sk | sed 's/^\([0-9]*\)[[:space:]]*/kib \1 /'
measured -s --inodes | sed 's/^\([0-9]*\)[[:space:]]*/inodes \1 /'
alive=$(squeue --noheader --user="$(id -u)" --format=%j) && printf '%s\n' "$alive" | sed -n 's/^./alive &/p' && echo whole
