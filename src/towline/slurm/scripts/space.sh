#!/bin/sh
# What limits writing to a directory: the file system's own room, and quotas as far as the cluster can tell.

# space PATH: of the nearest directory that is there, lines that `towline.slurm.space` reads:
#   disk FREE_KIB FREE_INODES ALL_INODES FILE_SYSTEM MOUNT_POINT PATH     "-" for what is not known
#   lfs user|group|project NAME LINE          a line of `lfs quota -q` (lfs-quota(1)), which fails for what is not on Lustre
#   quota LINE                                a line of `quota -w` (quota(1)), whose tables are of all file systems
space() {
    tl_at=$1
    while [ ! -d "$tl_at" ] && [ "$tl_at" != / ] && [ -n "$tl_at" ]; do tl_at=${tl_at%/*}; done
    : "${tl_at:=/}"
    df -Pk "$tl_at" 2>/dev/null | awk 'NR > 1 { free = $(NF - 2); from = $1; on = $NF } END { print free, from, on }' |
        {
            read -r tl_kib tl_from tl_on
            # shellcheck disable=SC2046 # two numbers, one word each
            set -- $(df -Pi "$tl_at" 2>/dev/null | awk 'NR > 1 { row = $(NF - 2) " " $(NF - 4) } END { print row }')
            printf 'disk %s %s %s %s %s %s\n' "${tl_kib:--}" "${1:--}" "${2:--}" "${tl_from:--}" "${tl_on:--}" "$tl_at"
        }
    space_quotas 2>/dev/null </dev/null
}

space_quotas() {
    if command -v lfs >/dev/null; then
        tl_user=$(id -un) tl_group=$(stat -c %G "$tl_at")
        if space_lfs user -u "$tl_user"; then
            space_lfs group -g "$tl_group"
            tl_project=$(lfs project -d "$tl_at" | awk '{ print $1; exit }')
            case $tl_project in '' | 0 | *[!0-9]*) ;; *) space_lfs project -p "$tl_project" ;; esac
            return 0
        fi
    fi
    # A server that is away would let it wait for minutes.
    if command -v quota >/dev/null; then
        if command -v timeout >/dev/null; then timeout 10 quota -w -u -g; else quota -w -u -g; fi | sed 's/^/quota /'
    fi
}

# space_lfs WHOSE OPTION NAME
space_lfs() {
    tl_said=$(lfs quota -q "$2" "$3" "$tl_at") || return
    printf '%s\n' "$tl_said" | tr '\n' ' ' | sed "s|^|lfs $1 $3 |"
    echo
}
