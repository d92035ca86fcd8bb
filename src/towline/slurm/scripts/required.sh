#!/bin/sh
# What must be on the cluster before a job is sent there.

# list_required: names everything that is missing, not only the first, and fails then. ./required has a line `p PATH` for
# what must exist, `i PATH` for a squashfs image that must be readable (its first four bytes are "hsqs"), and `y PATH` for
# one that must hold a Python, too.
list_required() {
    [ -f ./required ] || return 0
    tl_lacking=0
    while IFS= read -r tl_path; do
        tl_kind=${tl_path%% *} tl_path=${tl_path#* }
        if [ ! -e "$tl_path" ]; then
            tl_lacking=1
            printf 'missing %s\n' "$tl_path"
        elif [ "$tl_kind" != p ] && { [ ! -f "$tl_path" ] || [ ! -r "$tl_path" ]; }; then
            tl_lacking=1
            printf 'unreadable %s\n' "$tl_path"
        elif [ "$tl_kind" != p ] && [ "$(head -c 4 "$tl_path")" != hsqs ]; then
            tl_lacking=1
            printf 'no-image %s\n' "$tl_path"
        elif [ "$tl_kind" = y ] && lacks_python "$tl_path"; then
            tl_lacking=1
            printf 'no-python %s\n' "$tl_path"
        fi
    done <./required
    [ "$tl_lacking" -eq 0 ]
}

# lacks_python IMAGE: only where that is sure: the whole list of its files could be read, and none is called python.
lacks_python() {
    command -v unsquashfs >/dev/null 2>&1 || return 1
    { unsquashfs -l "$1" 2>/dev/null </dev/null && echo whole; } | awk '
        /\/python[0-9.]*$/ { found = 1; exit }
        { whole = $0 == "whole" }
        END { exit !(whole && !found) }'
}

check_required() {
    list_required || exit 43
}
