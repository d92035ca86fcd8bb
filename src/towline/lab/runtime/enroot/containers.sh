# shellcheck shell=sh
# Containers: a folder per container in ENROOT_DATA_PATH, and the processes whose root it is. Sourced by enroot.

# A container's folder; a name is never a path.
container_path() {
    [ -n "$1" ] || fail "Invalid argument"
    case $1 in */*) fail "Invalid argument: $1" ;; esac
    private_folder "$ENROOT_DATA_PATH"
    real_path "$ENROOT_DATA_PATH/$1"
}

existing_container() {
    found=$(container_path "$1")
    [ -d "$found" ] || fail "No such file or directory: $found"
    printf '%s' "$found"
}

# What is read-only in an image is nothing its owner cannot remove.
remove_all() {
    rm --one-file-system --preserve-root -rf "$1" 2>/dev/null ||
        { chmod -f -R +rwX "$1" || :; rm --one-file-system --preserve-root -rf "$1"; }
}

run_create() {
    name=''
    while [ $# -gt 0 ]; do
        case $1 in
        -f | --force) ENROOT_FORCE_OVERRIDE=y; shift ;;
        -n | --name) [ -n "${2-}" ] || usage create 1; name=$2; shift 2 ;;
        --name=?*) name=${1#*=}; shift ;;
        -h | --help) usage create 0 ;;
        --) shift; break ;;
        -?*) usage create 1 ;;
        *) break ;;
        esac
    done
    [ $# -eq 1 ] || usage create 1
    [ -n "$1" ] || fail "Invalid argument"
    image=$(real_path "$1")
    [ -f "$image" ] || fail "No such file or directory: $image"
    unsquashfs -s "$image" >/dev/null 2>&1 || fail "Invalid image format: $image"
    rootfs=$(container_path "${name:-$(basename "${image%.sqsh}")}")
    if [ -e "$rootfs" ]; then
        [ -n "${ENROOT_FORCE_OVERRIDE-}" ] || fail "File already exists: $rootfs"
        remove_all "$rootfs"
    fi
    info "Extracting squashfs filesystem..."
    unsquashfs -no-progress -processors "$ENROOT_MAX_PROCESSORS" -user-xattrs -d "$rootfs" "$image" >&2
    chmod -f -R u+rX "$rootfs" || :
    find "$rootfs" -maxdepth 15 -type d ! -perm -u=w -exec chmod -f u+w {} + || :
}

run_remove() {
    while [ $# -gt 0 ]; do
        case $1 in
        -f | --force) ENROOT_FORCE_OVERRIDE=y; shift ;;
        -h | --help) usage remove 0 ;;
        --) shift; break ;;
        -?*) usage remove 1 ;;
        *) break ;;
        esac
    done
    [ $# -ge 1 ] || usage remove 1
    for name in "$@"; do
        rootfs=$(existing_container "$name")
        reply=y
        if [ -z "${ENROOT_FORCE_OVERRIDE-}" ]; then
            [ ! -t 0 ] || printf 'Do you really want to delete %s? [y/N] ' "$rootfs" >&2
            read -r reply || exit 1
        fi
        case $reply in y | Y) remove_all "$rootfs" ;; esac
    done
}

run_export() {
    output=''
    while [ $# -gt 0 ]; do
        case $1 in
        -f | --force) ENROOT_FORCE_OVERRIDE=y; shift ;;
        -o | --output) [ -n "${2-}" ] || usage export 1; output=$2; shift 2 ;;
        --output=?*) output=${1#*=}; shift ;;
        -h | --help) usage export 0 ;;
        --) shift; break ;;
        -?*) usage export 1 ;;
        *) break ;;
        esac
    done
    [ $# -eq 1 ] || usage export 1
    rootfs=$(existing_container "$1")
    output=$(real_path "${output:-$1.sqsh}")
    if [ -e "$output" ]; then
        [ -n "${ENROOT_FORCE_OVERRIDE-}" ] || fail "File already exists: $output"
        rm -f "$output"
    fi
    begin_work
    # Places made for mounts have no permissions at all, which tells them from the image's own.
    {
        find "$rootfs" -path "$rootfs/dev/*" -o -perm 0000 -prune \( -empty -o -type d \)
        [ ! -f "$rootfs/.lock" ] || printf '%s\n' "$rootfs/.lock"
    } >"$work/excluded"
    info "Creating squashfs filesystem..."
    # shellcheck disable=SC2086 # a list of options
    mksquashfs "$rootfs" "$output" -all-root -no-progress -processors "$ENROOT_MAX_PROCESSORS" $ENROOT_SQUASH_OPTIONS \
        -ef "$work/excluded" >&2
}

# --- what runs ----------------------------------------------------------------------------------------------------

# The processes whose root is a container's folder, as lines "DEVICE:INODE PID"; others' processes show no root.
running() { stat -L -c '%d:%i %n' /proc/[0-9]*/root/ 2>/dev/null | sed -n 's|/proc/\([0-9]*\)/root/|\1|p'; }

# A row for a process, or the label alone when it has just ended.
describe() {
    ps -p "$2" --no-headers -o pid:1,stat:1,stime:1,etime:1,mntns:1,userns:1,command:1 2>/dev/null | awk -v "label=$1" '{
        getline comm <("/proc/" $1 "/comm")
        printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", label, $1, comm, $2, $3, $4, $5, $6
        print substr($0, index($0, $7))
        found = 1
    } END { if (!found) print label }'
}

list_fancy() {
    printf 'NAME\tPID\tCOMM\tSTATE\tSTARTED\tTIME\tMNTNS\tUSERNS\tCOMMAND\n'
    processes=$(running)
    for folder in "$ENROOT_DATA_PATH"/*/; do
        [ -d "$folder" ] || continue
        label=$(basename "$folder")
        pids=$(printf '%s\n' "$processes" | awk -v "root=$(stat -c %d:%i "$folder")" '$1 == root { print $2 }')
        [ -n "$pids" ] || printf '%s\n' "$label"
        for pid in $pids; do
            describe "$label" "$pid"
            label=' '
        done
    done
}

align() {
    awk -F '\t' '
        { n[NR] = split($0, field); for (i = 1; i <= n[NR]; i++) { cell[NR, i] = field[i]; if (length(field[i]) > width[i]) width[i] = length(field[i]) } }
        END { for (r = 1; r <= NR; r++) { line = ""; for (i = 1; i <= n[r]; i++) line = line sprintf(i < n[r] ? "%-*s  " : "%*s", i < n[r] ? width[i] : 0, cell[r, i]); print line } }'
}

run_list() {
    fancy=''
    while [ $# -gt 0 ]; do
        case $1 in
        -f | --fancy) fancy=y; shift ;;
        -h | --help) usage list 0 ;;
        --) shift; break ;;
        -?*) usage list 1 ;;
        *) break ;;
        esac
    done
    if [ -n "$fancy" ]; then
        list_fancy | align
    elif [ -d "$ENROOT_DATA_PATH" ]; then
        ls -1 "$ENROOT_DATA_PATH"
    fi
}

# --- start and exec -----------------------------------------------------------------------------------------------

# ${NAME} of an image's or a configuration's file becomes the variable's value.
expand() {
    [ ! -f "$1" ] || awk '{
        line = $0
        while (match(line, /\$\{[A-Za-z_][A-Za-z0-9_]*\}/)) {
            printf "%s%s", substr(line, 1, RSTART - 1), ENVIRON[substr(line, RSTART + 2, RLENGTH - 3)]
            line = substr(line, RSTART + RLENGTH)
        }
        print line
    }' "$1"
}

# NAME=VALUE lines without comments, Enroot's own variables and quotes around values.
clean_environment() {
    sed -e 's/^[[:space:]]*//' -e '/^[A-Za-z_][A-Za-z0-9_]*=/!d' -e '/^ENROOT_/d' \
        -e 's/^\([A-Za-z_][A-Za-z0-9_]*\)=["'\'']\(.*\)["'\''][[:space:]]*$/\1=\2/'
}

add_variable() {
    printf '%s' "$1" | tr '\n' ' ' | grep -Eq '^[A-Za-z_][A-Za-z0-9_]*(=|$)' || fail "Invalid argument: $1"
    case $1 in *=*) printf '%s\n' "$1" ;; *) eval "printf '%s=%s\\n' \"$1\" \"\${$1-}\"" ;; esac >>"$work/given"
}

# The names of the user, root and nobody come first, since the first line of a name or number counts.
write_identity() {
    user=$(getent passwd "$(id -u)") || user="user:x:$(id -u):$(id -g)::/:/bin/sh"
    group=$(getent group "$(id -g)") || group="group:x:$(id -g):"
    shell=${user##*:} user=${user%:*}
    [ -x "$ENROOT_ROOTFS$shell" ] || shell=/bin/sh
    mkdir -p "$ENROOT_ROOTFS/etc"
    touch "$ENROOT_ROOTFS/etc/passwd" "$ENROOT_ROOTFS/etc/group"
    {
        printf 'root:x:0:0:root:/root:%s\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n%s:%s\n' "$shell" "$user" "$shell"
        grep -Ev "^(root|nobody|_apt|${user%%:*}):" "$ENROOT_ROOTFS/etc/passwd" || :
    } >"$work/passwd"
    {
        printf 'root:x:0:\nnogroup:x:65534:\n%s\n' "$group"
        grep -Ev "^(root|nogroup|_apt|${group%%:*}):" "$ENROOT_ROOTFS/etc/group" || :
    } >"$work/group"
    cat "$work/passwd" >"$ENROOT_ROOTFS/etc/passwd"
    cat "$work/group" >"$ENROOT_ROOTFS/etc/group"
    home=${user##*:}
    [ -e "$ENROOT_ROOTFS$home" ] || (umask 077 && mkdir -p "$ENROOT_ROOTFS$home")
    [ -z "${ENROOT_MOUNT_HOME-}" ] || mount_home "${HOME:-$home}"
}

mount_home() {
    inside=$1
    [ -z "${ENROOT_REMAP_ROOT-}" ] || inside=/root
    printf '%s %s none x-create=dir,bind,rw,nosuid\n' "$1" "$inside" >>"$ENROOT_MOUNTS"
    printf 'HOME=%s\n' "$inside" >>"$ENROOT_ENVIRON"
}

defines() { [ "$(command -v "$1")" = "$1" ]; }

run_hooks() {
    for hook in "$1"/*.sh; do
        [ ! -x "$hook" ] || "$hook" >/dev/null || fail "$hook exited with return code $?"
    done
}

# What a configuration may define as environ, hooks and mounts, around what the image and the host bring. In a subshell:
# a configuration is anybody's.
configure_start() (
    export ENROOT_PID=$$ ENROOT_ROOTFS="$1" ENROOT_ENVIRON="$work/environment" ENROOT_MOUNTS="$work/fstab"
    # shellcheck disable=SC1090 # the user's
    [ -z "$2" ] || . "$2"
    {
        expand "$ENROOT_ROOTFS/etc/environment"
        for file in "$ENROOT_SYSCONF_PATH/environ.d"/*.env "$ENROOT_CONFIG_PATH/environ.d"/*.env; do expand "$file"; done
        ! defines environ || environ
        cat "$work/given"
    } >"$ENROOT_ENVIRON"
    for file in "$ENROOT_SYSCONF_PATH/mounts.d"/*.fstab "$ENROOT_CONFIG_PATH/mounts.d"/*.fstab "$ENROOT_ROOTFS/etc/fstab"; do
        expand "$file"
    done >"$ENROOT_MOUNTS"
    write_identity
    run_hooks "$ENROOT_SYSCONF_PATH/hooks.d"
    run_hooks "$ENROOT_CONFIG_PATH/hooks.d"
    ! defines hooks || hooks >/dev/null
    ! defines mounts || mounts >>"$ENROOT_MOUNTS"
    cat "$work/wanted" >>"$ENROOT_MOUNTS"
    clean_environment <"$ENROOT_ENVIRON" >"$work/clean"
    mv "$work/clean" "$ENROOT_ENVIRON"
)

# A folder for the files of one command.
begin_work() {
    private_folder "$ENROOT_RUNTIME_PATH"
    work=$(umask 077 && mktemp -d "$ENROOT_RUNTIME_PATH/start.XXXXXXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 143' TERM HUP
    trap 'exit 130' INT
    : >"$work/given"
    : >"$work/wanted"
}

run_start() {
    begin_work
    conf=''
    while [ $# -gt 0 ]; do
        case $1 in
        -c | --conf) [ -n "${2-}" ] || usage start 1; conf=$2; shift 2 ;;
        --conf=?*) conf=${1#*=}; shift ;;
        -e | --env) [ -n "${2-}" ] || usage start 1; add_variable "$2"; shift 2 ;;
        --env=?*) add_variable "${1#*=}"; shift ;;
        -m | --mount) [ -n "${2-}" ] || usage start 1; add_mount "$2"; shift 2 ;;
        --mount=?*) add_mount "${1#*=}"; shift ;;
        -r | --root) ENROOT_REMAP_ROOT=y; shift ;;
        -w | --rw) ENROOT_ROOTFS_WRITABLE=y; shift ;;
        -h | --help) usage start 0 ;;
        --) shift; break ;;
        -?*) usage start 1 ;;
        *) break ;;
        esac
    done
    [ $# -ge 1 ] || usage start 1
    # Enroot mounts an image with squashfuse, which is not among the lab's packages.
    if [ -f "$1" ] && unsquashfs -s "$1" >/dev/null 2>&1; then fail "Command not found: squashfuse"; fi
    rootfs=$(existing_container "$1")
    shift
    if [ -n "$conf" ]; then
        conf=$(real_path "$conf")
        [ -f "$conf" ] || fail "No such file or directory: $conf"
    fi
    exec 9>"$rootfs/.lock"
    flock -w 30 9 || fail "Could not acquire rootfs lock"
    configure_start "$rootfs" "$conf"
    exec 9>&-
    # From here on the folder is the next program's to remove.
    trap - EXIT
    # shellcheck disable=SC2154 # of the script that sources this one
    exec "$here/enroot-enter" start ${ENROOT_REMAP_ROOT:+--root} ${ENROOT_ROOTFS_WRITABLE:+--rw} "$work" "$rootfs" "$@"
}

add_mount() {
    printf '%s' "$1" | tr '\n' ' ' | grep -Eqx '[^[:space:]:]+(:[^[:space:]:]+)*' || fail "Invalid argument: $1"
    printf '%s\n' "$1" | tr ':' ' ' >>"$work/wanted"
}

run_exec() {
    begin_work
    while [ $# -gt 0 ]; do
        case $1 in
        -e | --env) [ -n "${2-}" ] || usage exec 1; add_variable "$2"; shift 2 ;;
        --env=?*) add_variable "${1#*=}"; shift ;;
        -h | --help) usage exec 0 ;;
        --) shift; break ;;
        -?*) usage exec 1 ;;
        *) break ;;
        esac
    done
    [ $# -ge 2 ] || usage exec 1
    kill -0 "$1" 2>/dev/null || fail "Process not found: $1"
    mv "$work/given" "$work/environment"
    trap - EXIT
    exec "$here/enroot-enter" exec "$work" "$@"
}
