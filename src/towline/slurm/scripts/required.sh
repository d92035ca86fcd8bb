#!/bin/sh
# What must be on the cluster before a job is sent there.

# list_required: names everything that is missing, not only the first, and fails then. ./required has a line `p PATH` for
# what must exist, `i PATH` for a squashfs image that must be readable (its first four bytes are "hsqs"), `y PATH` for one
# that must hold a Python, too, and `n PATH` for one that must hold a Python and what brings data of NGC.
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
        elif tl_no=$(not_in "$tl_path" "$tl_kind") && [ -n "$tl_no" ]; then
            tl_lacking=1
            printf '%s %s\n' "$tl_no" "$tl_path"
        fi
    done <./required
    [ "$tl_lacking" -eq 0 ]
}

# not_in IMAGE KIND: prints `no-python` or `no-ngc`, only where that is sure: the whole list of its files could be read, and
# none is called python, or none is the module `ngcsdk` or the program `ngc`.
not_in() {
    case $2 in y | n) ;; *) return 0 ;; esac
    command -v unsquashfs >/dev/null 2>&1 || return 0
    { unsquashfs -l "$1" 2>/dev/null </dev/null && echo whole; } | awk -v kind="$2" '
        /\/python[0-9.]*$/ { python = 1 }
        /\/ngc(sdk)?$/ { ngc = 1 }
        python && (ngc || kind == "y") { found = 1; exit }
        { whole = $0 == "whole" }
        END { if (whole && !found) print(python ? "no-ngc" : "no-python") }'
}

check_required() {
    list_required || exit 43
}
