#!/bin/sh
# shellcheck disable=SC2154  # imports.sh sets tl_n
# What takes a job's results away waits for one Slurm job. When that is over and the job goes on under another one, it is
# submitted once more, by whoever sees it first: a client (again.sh), or that job itself (deliver-job.sh).

# may_deliver_again DIR N: nobody else does it for attempt N of the job with this directory, and it is due: what was to
# deliver (its directory and attempt are in tl_own and tl_n) has said its last word.
may_deliver_again() {
    tl_own=$1/outputs/imports/all
    newest_import "$tl_own"
    [ "$tl_n" -gt 0 ] && [ -f "$tl_own/attempts/$tl_n/end" ] && mkdir "$tl_own/attempts/$tl_n/after.$2" 2>/dev/null
}

# deliver_after ID: submits it to wait for that Slurm job. It could not begin before; the keys are those of the job, which
# keeps them while it may go on.
deliver_after() {
    tl_at=$tl_own/attempts/$tl_n
    rm -f "$tl_at/claim"
    mv -f "$tl_at/end" "$tl_at/.end"
    if tl_new=$(cd "$tl_own" && sbatch --parsable "--dependency=afterany:${1%%;*}" "$tl_own/script/batch-$tl_n" 2>>"$tl_at/log" </dev/null); then
        printf '%s\n' "$tl_new" >"$tl_at/.submit" && mv -f "$tl_at/.submit" "$tl_at/submit"
        [ ! -f "${tl_own%/outputs/*}/secrets" ] || (umask 077 && cp "${tl_own%/outputs/*}/secrets" "$tl_own/script/secrets-$tl_n")
    else
        mv -f "$tl_at/.end" "$tl_at/end"
        return 1
    fi
}
