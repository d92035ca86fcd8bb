#!/bin/sh
# Directories and the space in them.

# nearest PATH: the path, or the nearest directory above it that is there.
nearest() {
    tl_near=$1
    while [ ! -e "$tl_near" ] && [ "$tl_near" != / ] && [ -n "$tl_near" ]; do tl_near=${tl_near%/*}; done
    printf '%s' "${tl_near:-/}"
}

# room PATH: `<writable yes|no> <free KiB> <free inodes> <kind of file system>` of the nearest directory that is there.
room() {
    tl_at=$(nearest "$1")
    tl_can=no
    [ -d "$tl_at" ] && [ -w "$tl_at" ] && [ -x "$tl_at" ] && tl_can=yes
    tl_free=$(df -Pk "$tl_at" 2>/dev/null | awk 'NR > 1 { print $(NF - 2) }' | tail -n 1)
    tl_inodes=$(df -Pi "$tl_at" 2>/dev/null | awk 'NR > 1 { print $(NF - 2) }' | tail -n 1)
    printf '%s %s %s %s' "$tl_can" "${tl_free:--}" "${tl_inodes:--}" "$(stat -f -c %T "$tl_at" 2>/dev/null || echo -)"
}
