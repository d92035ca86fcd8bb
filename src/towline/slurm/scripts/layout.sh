#!/bin/sh
# What a job has below the root beside its own directory: the links that script/layout names, and those to its logs.

# forget_layout ROOT DIRECTORY: takes the links away.
forget_layout() {
    while read -r tl_kind tl_path _; do
        case /$tl_path/ in */../*) continue ;; esac
        if [ "$tl_kind" = link ] && [ -h "$1/$tl_path" ]; then rm -f "$1/$tl_path"; fi
    done <"$2/script/layout"
    for tl_link in "$2"/slurm-logs/*; do
        if [ -h "$1/slurm-logs/${tl_link##*/}" ]; then rm -f "$1/slurm-logs/${tl_link##*/}"; fi
    done
}
