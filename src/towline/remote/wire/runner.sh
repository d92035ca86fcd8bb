# shellcheck shell=sh
# shellcheck disable=SC2154  # the bootstrap line or the server sets towline_nonce, towline_mode and towline_dir
# shellcheck disable=SC2317  # the functions are called by what is appended to this file, and by traps
#
# Runs one operation on a login host. The bootstrap line reads this (`.`) as the last member of an archive: that it is
# there whole means that everything before it is. Appended is the call of `towline_operation` for a channel that serves
# one operation, or the server, which calls it in a subshell for one operation after another (towline_served).
#
# fd 3: the client's life line (its end means that the client is gone)   fd 4: the client's stderr
# fd 6, 7: where the script's stdout and stderr go. What this file's own commands complain about is nobody's data.

exec 3<&0 4>&2 </dev/null 2>/dev/null
towline_served='' towline_turn=''

# Tells the operation to stop, waits up to five seconds and kills what is left.
towline_end() {
    trap '' HUP INT PIPE TERM
    kill -TERM "$towline_group"
    towline_tenths=0
    while kill -0 "$towline_child" && [ "$towline_tenths" -lt 50 ]; do
        sleep 0.1 || { sleep 1 && towline_tenths=$((towline_tenths + 9)); }
        towline_tenths=$((towline_tenths + 1))
    done
    [ -n "$towline_served" ] || rm -rf "$towline_dir"
    kill -KILL "$towline_group"
}

# What a signal does. One that comes before the script's process is known is seen to right after.
towline_stop() {
    trap '' HUP INT PIPE TERM
    towline_stopped=yes
    # Not `[ … ] || … &`: that would be a background job either way, and `$!` no more the script.
    if [ -n "$towline_child" ]; then towline_end >/dev/null 4>&- 6>&- 7>&- & fi
}

# The script and its arguments are read, not passed: `ps` shows them to every user of the login host. What a
# shell says while it starts (a locale that does not exist here) is not the script's stderr.
# shellcheck disable=SC2016  # it is the other shell that expands this
towline_script='exec 2>&7 7>&-; cd "$0/files" || exit 126; . "$0/args"; . "$0/script"'

# One process group for everything the script starts: by setsid, by job control, or, where there is neither
# (dash without a terminal), the one that sshd has made for this session.
towline_begin() {
    if command -v setsid >/dev/null; then
        setsid /bin/sh -c "$towline_script" "$towline_dir" >&6 3<&- 4>&- 6>&- &
        towline_child=$! towline_group=-$! towline_own=yes
        return
    fi
    set -m
    /bin/sh -c "$towline_script" "$towline_dir" >&6 3<&- 4>&- 6>&- &
    towline_child=$! towline_group=$! towline_own=
    set +m
    if kill -0 "-$towline_child"; then
        towline_group=-$towline_child towline_own=yes
    elif kill -0 "-$$"; then
        towline_group=-$$
    fi
}

towline_operation() {
    printf 'towline-%s-start\n' "$towline_nonce"
    printf 'towline-%s-start\n' "$towline_nonce" >&4

    # The client may go, and a script that writes into its closed pipe would be killed by that. On a channel that
    # goes on, what a script leaves running must not write into the next one's answer.
    towline_files=$towline_served
    [ "$towline_mode" != survive ] || towline_files=yes
    if [ -n "$towline_files" ]; then
        exec 3<&- 6>"$towline_dir/stdout$towline_turn" 7>"$towline_dir/stderr$towline_turn"
    else
        exec 6>&1 7>&4
    fi

    towline_child='' towline_stopped='' towline_watcher=''
    if [ "$towline_mode" = survive ]; then trap '' HUP PIPE; else trap towline_stop HUP INT PIPE TERM; fi
    towline_begin
    [ -z "$towline_stopped" ] || towline_stop
    if [ -z "$towline_files" ]; then
        (
            read -r _  # the end of the life line, or a word on it
            towline_end
        ) <&3 >/dev/null 4>&- 6>&- 7>&- &
        towline_watcher=$!
    fi
    exec 3<&-

    # A signal to this shell ends `wait` too; the script is over when it is gone.
    while wait "$towline_child"; towline_code=$?; [ "$towline_code" -gt 128 ] && kill -0 "$towline_child"; do :; done

    if [ "$towline_mode" != survive ]; then
        trap '' HUP INT PIPE TERM
        [ -n "$towline_own" ] || kill -TERM "$towline_group"
        [ -z "$towline_own" ] || kill -KILL "$towline_group"
        [ -z "$towline_watcher" ] || kill -KILL "$towline_watcher"
    fi
    if [ -n "$towline_files" ]; then
        [ ! -s "$towline_dir/stdout$towline_turn" ] || cat "$towline_dir/stdout$towline_turn"
        [ ! -s "$towline_dir/stderr$towline_turn" ] || cat "$towline_dir/stderr$towline_turn" >&4
    fi
    # On a channel that goes on there is time for this while the answer travels.
    [ -n "$towline_served" ] || rm -rf "$towline_dir"
    printf 'towline-%s-end:%d\n' "$towline_nonce" "$towline_code" >&4
    printf 'towline-%s-end:%d\n' "$towline_nonce" "$towline_code"
    [ -z "$towline_served" ] || towline_clear
    exit 0
}
