# shellcheck shell=sh
# Enroot's settings: of the environment, else of enroot.conf, else Enroot's own. Sourced; `here` is this file's folder.

# A value may refer to variables and commands, e.g. $(id -u); NAME VALUE and NAME=VALUE are the same.
load_config() {
    conf=${ENROOT_SYSCONF_PATH:-$here/../../etc/enroot}/enroot.conf
    [ -r "$conf" ] || return 0
    while IFS='	 =' read -r name value; do
        case $name in ENROOT_*[!A-Z_]* | ENROOT_) continue ;; ENROOT_*) ;; *) continue ;; esac
        eval "current=\${$name-}"
        if [ -n "$current" ]; then export "${name?}"; else eval "export $name=\"$value\""; fi
    done <"$conf"
}

set_default() {
    eval "current=\${$1-}"
    export "$1=${current:-$2}"
}

# As in Enroot, a setting that says no is as good as unset.
set_defaults() {
    home=${HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)}
    set_default ENROOT_SYSCONF_PATH "$here/../../etc/enroot"
    set_default ENROOT_RUNTIME_PATH "${XDG_RUNTIME_DIR:-/run}/enroot"
    set_default ENROOT_CONFIG_PATH "${XDG_CONFIG_HOME:-$home/.config}/enroot"
    set_default ENROOT_CACHE_PATH "${XDG_CACHE_HOME:-$home/.cache}/enroot"
    set_default ENROOT_DATA_PATH "${XDG_DATA_HOME:-$home/.local/share}/enroot"
    set_default ENROOT_TEMP_PATH "${TMPDIR:-/tmp}"
    set_default ENROOT_SQUASH_OPTIONS '-comp lzo -noD -exit-on-error'
    set_default ENROOT_MAX_PROCESSORS "$(nproc)"
    for name in ENROOT_ROOTFS_WRITABLE ENROOT_REMAP_ROOT ENROOT_MOUNT_HOME ENROOT_FORCE_OVERRIDE; do
        eval "current=\${$name-}"
        case $current in n | no | N | NO | No | nO | f | F | false | False | FALSE) unset "$name" ;; esac
    done
}
