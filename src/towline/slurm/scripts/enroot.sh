#!/bin/sh
# Where Enroot keeps things on this host, and the space there.

# The value of an Enroot setting: of the environment, else of enroot.conf, else $2. A value in that file may refer to
# variables and commands; it belongs to root, and Enroot itself evaluates it.
enroot_setting() {
    eval "tl_value=\${$1-}"
    if [ -z "$tl_value" ] && [ -n "$tl_enroot_conf" ]; then
        tl_value=$(sed -n "s/^[[:space:]]*$1[[:space:]=][[:space:]]*//p" "$tl_enroot_conf" | tail -n 1)
        tl_value=$(eval "printf '%s' \"$tl_value\"" 2>/dev/null)
    fi
    printf '%s' "${tl_value:-$2}"
}

find_enroot_conf() {
    tl_program=$(command -v enroot 2>/dev/null) && tl_program=$(readlink -f "$tl_program")
    tl_prefix=${tl_program%/*}
    tl_enroot_conf=
    for tl_file in "${ENROOT_SYSCONF_PATH:-/etc/enroot}" /usr/local/etc/enroot "$tl_prefix/../etc/enroot" "$tl_prefix/../../etc/enroot"; do
        if [ -r "$tl_file/enroot.conf" ]; then
            tl_enroot_conf=$tl_file/enroot.conf
            return
        fi
    done
}

# A frame with a line `NAME <room> PATH` for each of Enroot's directories.
enroot_places() {
    tl_home=${HOME:-/}
    find_enroot_conf
    printf '@fact enroot-places\n'
    while read -r tl_name tl_default; do
        tl_place=$(enroot_setting "ENROOT_${tl_name}_PATH" "$tl_default")
        printf '>%s %s %s\n' "$tl_name" "$(room "$tl_place")" "$tl_place"
    done <<END
RUNTIME ${XDG_RUNTIME_DIR:-/run}/enroot
CACHE ${XDG_CACHE_HOME:-$tl_home/.cache}/enroot
DATA ${XDG_DATA_HOME:-$tl_home/.local/share}/enroot
TEMP ${TMPDIR:-/tmp}
END
}

# The path of the file with Enroot's registry credentials.
credentials_file() {
    find_enroot_conf
    printf '%s/.credentials' "$(enroot_setting ENROOT_CONFIG_PATH "${XDG_CONFIG_HOME:-${HOME:-}/.config}/enroot")"
}

# A frame with the file's path and mode, then a line for each registry with the user's name in it: never a password.
credentials() {
    tl_credentials=$(credentials_file)
    tl_mode=-
    [ -f "$tl_credentials" ] && tl_mode=$(stat -c %a "$tl_credentials" 2>/dev/null)
    printf '@fact credentials\n>%s %s\n' "${tl_mode:--}" "$tl_credentials"
    [ -r "$tl_credentials" ] || return 0
    awk '$1 == "machine" && $3 == "login" { print ">" $2, $4 }' "$tl_credentials"
}
