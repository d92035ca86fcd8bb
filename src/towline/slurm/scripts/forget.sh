#!/bin/sh
# forget.sh DIR…: takes away the secrets of jobs that are over for good. What cannot be removed is printed, one a line.
for tl_dir; do
    rm -f -- "$tl_dir/secrets" || printf 'kept %s/secrets\n' "$tl_dir"
done
