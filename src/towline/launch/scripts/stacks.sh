#!/bin/sh
# Runs once on each node of a job that hangs: stacks DIRECTORY, the attempt's.
#
# Writes DIRECTORY/stacks/<node>: of every process of the ranks there, what the kernel says of it and of its threads (proc(5)),
# and its stack, where py-spy or gdb is there to ask, in its container or on the node. Programs that catch USR1 are sent it, and then those that catch ABRT
# (Python with PYTHONFAULTHANDLER=1): they write their stacks to their own stderr, which is the log.
set -u
umask 077
tl_node=${SLURMD_NODENAME:-$(uname -n)}

# ranks: lines PID RANK of the ranks on this node, as their preludes have written them.
ranks() {
    tl_pid='' tl_on=''
    for tl_record in "$1"/exit/.[0-9]* "$1"/roles/*/exit/.[0-9]*; do
        [ -f "$tl_record" ] || continue
        read -r tl_pid tl_on _ <"$tl_record"
        case $tl_pid in '' | *[!0-9]*) continue ;; esac
        [ "$tl_on" != "$tl_node" ] || printf '%s %s\n' "$tl_pid" "${tl_record##*/.}"
    done
}

# below PID: the processes that it has started, and those that they have. The name in stat may hold anything but its last `)`.
below() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v tl_root="$1" '
        { pid = $1; sub(/^.*\) /, ""); parent[pid] = $2 }
        END {
            is[tl_root] = 1
            do {
                more = 0
                for (pid in parent) if (!is[pid] && is[parent[pid]]) { is[pid] = more = 1; print pid }
            } while (more)
        }'
}

# show PID RANK
show() {
    printf '\n== rank %s, process %s: %s\n' "$2" "$1" "$(tr '\000\n' '  ' <"/proc/$1/cmdline" | cut -c 1-1000)"
    grep -E '^(Name|State|PPid|Threads|VmRSS|SigCgt):' "/proc/$1/status"
    for tl_what in syscall stack; do
        tl_text=$(cat "/proc/$1/$tl_what" 2>/dev/null) && printf '%s: %s\n' "$tl_what" "$tl_text"
    done
    for tl_thread in "/proc/$1"/task/*; do
        printf 'thread %s (%s): %s, waits in %s\n' "${tl_thread##*/}" "$(cat "$tl_thread/comm")" \
            "$(sed -n 's/^State:[^A-Z]*//p' "$tl_thread/status")" "$(cat "$tl_thread/wchan" 2>/dev/null)"
    done | head -n 500
    show_calls "$1"
}

# show_calls PID: asked in the container first, which has the tools of whoever made its image. As root of its user namespace one
# may look, besides, where a user of the node may not (ptrace_scope of Yama).
show_calls() {
    if [ "$(readlink "/proc/$1/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]; then
        tl_path=$(tr '\000' '\n' <"/proc/$1/environ" | sed -n 's/^PATH=//p' | head -n 1)
        ! timeout 20 nsenter --target "$1" --user --mount --preserve-credentials /bin/sh -c "$tl_ask" ask "$1" "$tl_path" || return 0
    fi
    timeout 20 /bin/sh -c "$tl_ask" ask "$1" "$PATH"
}

# Asks process $1 for its stack, with what is in the folders $2: py-spy knows Python only, and it may not be allowed.
# shellcheck disable=SC2016  # that shell's
tl_ask='PATH=$2:$PATH
! command -v py-spy >/dev/null || ! py-spy dump --pid "$1" || exit 0
command -v gdb >/dev/null && exec gdb -batch -p "$1" -ex "thread apply all backtrace" </dev/null'

# catches PID BIT: whether the process has a handler for that signal; bit 0 is signal 1.
catches() {
    tl_mask=$(sed -n 's/^SigCgt:.*\(.\{8\}\)$/\1/p' "/proc/$1/status" 2>/dev/null)
    [ -n "$tl_mask" ] && [ $(((0x$tl_mask >> $2) & 1)) -eq 1 ]
}

ranks "$1" | while read -r tl_pid tl_rank; do
    for tl_each in $(below "$tl_pid"); do printf '%s %s\n' "$tl_each" "$tl_rank"; done
done >"$1/stacks/.processes.$tl_node"
while read -r tl_pid tl_rank; do
    show "$tl_pid" "$tl_rank"
done <"$1/stacks/.processes.$tl_node" 2>/dev/null | head -c 8388608 >"$1/stacks/$tl_node"
while read -r tl_pid _; do
    if catches "$tl_pid" 9; then kill -s USR1 "$tl_pid"; fi
done <"$1/stacks/.processes.$tl_node" 2>/dev/null
sleep 2
while read -r tl_pid _; do
    if catches "$tl_pid" 5; then kill -s ABRT "$tl_pid"; fi
done <"$1/stacks/.processes.$tl_node" 2>/dev/null
rm -f "$1/stacks/.processes.$tl_node"
sleep 1
