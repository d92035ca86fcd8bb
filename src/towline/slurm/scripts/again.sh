#!/bin/sh
# again.sh DIR NUMBER TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…: the attempt before NUMBER has ended, says Slurm; submit
# attempt NUMBER, if that one's own decision does not say no and the budget allows it.
# ./end has lines `class=` and `nodes=` (how the attempt ended, for one without a decision, and which nodes were bad),
# `retries=` and `patience=` (the budget), `checkpoints=` (the spec's pattern), `always=` (nodes that the spec leaves out) and
# `further=` (known from other jobs).
# Prints `exclude=…` before what submit_attempt prints, or `why=…` (exit code 52).
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/attempt.sh
. ./attempt.sh
# shellcheck source=src/towline/slurm/scripts/past.sh
. ./past.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/redeliver.sh
. ./redeliver.sh

# see_progress DIR PATTERN: whether the newest checkpoint is another one than the attempt found when it began. One that did
# not come so far as to look has made none.
see_progress() {
    [ -n "$2" ] || return 0
    tl_progress=no tl_after=$(newest_checkpoint "$1/results" "$2")
    if [ -f "$tl_last/checkpoint" ] && [ "$tl_after" != "$(head -n 1 "$tl_last/checkpoint")" ]; then tl_progress=yes; fi
}

# decide: the ended attempt's own decision stands; without one it is written down here, so that it counts from now on.
decide() {
    tl_file=$tl_last/decision
    if [ -f "$tl_file" ] && [ "$(field class "$tl_file")" != stopped ]; then
        tl_class=$(field class "$tl_file") tl_nodes=$(field nodes "$tl_file")
        [ "$(field next "$tl_file")" = yes ] || stop "$(field why "$tl_file")"
        return
    fi
    tl_why='' tl_next=yes
    see_progress "${tl_last%/attempts/*}" "$(field checkpoints ./end)"
    has_budget "$(field retries ./end)" "$(field patience ./end)" || tl_next=no
    mkdir -p "$tl_last"
    {
        printf 'class=%s\nnext=%s\nwhy=%s\nnodes=%s\nprogress=%s\nevidence=\ntime=%s\n' "$tl_class" "$tl_next" "$tl_why" \
            "$tl_nodes" "$tl_progress" "$(date +%s)" >"$tl_last/.decision.$$" && mv -f "$tl_last/.decision.$$" "$tl_file"
    } 2>./make.err || write_failed ./make.err
    [ "$tl_next" = yes ] || stop "$tl_why"
}

stop() {
    printf 'why=%s\n' "$1"
    exit 52
}

tl_dir=$1 tl_last=$1/attempts/$(($2 - 1)) tl_progress=''
tl_class=$(field class ./end) tl_nodes=$(field nodes ./end)
find_slurm
refuse_if_cancelled
count_past "$1" "$(($2 - 1))" ''
decide
choose_exclusion "$1/script/batch" "$(field always ./end)" "$(joined "$tl_bad" "$(field further ./end)")" "$tl_nodes"
printf 'exclude=%s\n' "$tl_exclude"
exclude_from "$1/script/batch" "$1/script/batch.excluding"
tl_logs=$(printf '%s' "$1/attempts/$2" | sed 's/%/%%/g')
submit_attempt "$@" "--job-name=$3" "--output=$tl_logs/main.out" "--error=$tl_logs/main.err" \
    ${tl_word:+"$tl_word"} "$tl_batch" "$2"
! may_deliver_again "$1" "$2" || deliver_after "$tl_id" || echo 'nobody will take the outputs away' >&2
