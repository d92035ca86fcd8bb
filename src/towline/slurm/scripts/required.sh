#!/bin/sh
# What must be on the cluster before a job is sent there.

# list_required: names everything that is missing, not only the first, and fails then. ./required has a line `p PATH` for
# what must exist and `i PATH` for a squashfs image that must be readable (its first four bytes are "hsqs").
list_required() {
    [ -f ./required ] || return 0
    tl_lacking=0
    while IFS= read -r tl_path; do
        tl_kind=${tl_path%% *} tl_path=${tl_path#* }
        if [ ! -e "$tl_path" ]; then
            tl_lacking=1
            printf 'missing %s\n' "$tl_path"
        elif [ "$tl_kind" = i ] && { [ ! -f "$tl_path" ] || [ ! -r "$tl_path" ]; }; then
            tl_lacking=1
            printf 'unreadable %s\n' "$tl_path"
        elif [ "$tl_kind" = i ] && [ "$(head -c 4 "$tl_path")" != hsqs ]; then
            tl_lacking=1
            printf 'no-image %s\n' "$tl_path"
        fi
    done <./required
    [ "$tl_lacking" -eq 0 ]
}

check_required() {
    list_required || exit 43
}
