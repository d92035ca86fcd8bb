#!/bin/sh
# Directories that are safely the user's own.

# check_own PATH: a directory of the user's own that nobody else can write to.
check_own() {
    tl_facts=$(stat -c '%A %u' "$1" 2>./make.err)
    : "${tl_uid:=$(id -u)}"
    case $tl_facts in
    d????w* | d???????w*) printf '%s can be written by others (%s)\n' "$1" "${tl_facts% *}" >&2 ;;
    d*" $tl_uid") return 0 ;;
    d*) printf '%s belongs to user %s\n' "$1" "${tl_facts#* }" >&2 ;;
    *) printf '%s is not a directory\n' "$1" >&2 ;;
    esac
    exit 42
}
