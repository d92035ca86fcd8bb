# shellcheck shell=sh
# shellcheck disable=SC2154  # the bootstrap line sets towline_nonce, towline_mode and towline_dir
#
# Runs one operation on a login host. The bootstrap line reads it (`.`) as the last member of the operation's
# archive: that it is there whole means that everything before it is. The line removes the directory at exit.
#
# fd 3: the client's life line (its end means that the client is gone)   fd 4: the client's stderr
# fd 6, 7: where the script's stdout and stderr go. What this file's own commands complain about is nobody's data.

exec 3<&0 4>&2 </dev/null 2>/dev/null

# Tells the operation to stop, waits up to five seconds and kills what is left.
towline_end() {
    trap '' HUP INT PIPE TERM
    kill -TERM "$towline_group"
    towline_tenths=0
    while kill -0 "$towline_child" && [ "$towline_tenths" -lt 50 ]; do
        sleep 0.1 || { sleep 1 && towline_tenths=$((towline_tenths + 9)); }
        towline_tenths=$((towline_tenths + 1))
    done
    rm -rf "$towline_dir"
    kill -KILL "$towline_group"
}

# The script and its arguments are read, not passed: `ps` shows them to every user of the login host. What a
# shell says while it starts (a locale that does not exist here) is not the script's stderr.
# shellcheck disable=SC2016  # it is the other shell that expands this
towline_script='exec 2>&7 7>&-; cd "$0/files" || exit 126; . "$0/args"; . "$0/script"'

printf 'towline-%s-start\n' "$towline_nonce"
printf 'towline-%s-start\n' "$towline_nonce" >&4

if [ "$towline_mode" = survive ]; then
    # The client may go; a script that writes into its closed pipe would be killed by that.
    exec 3<&- 6>"$towline_dir/stdout" 7>"$towline_dir/stderr"
    trap '' HUP PIPE
else
    exec 6>&1 7>&4
fi

# One process group for everything the script starts: by setsid, by job control, or, where there is neither
# (dash without a terminal), the one that sshd has made for this session.
if command -v setsid >/dev/null; then
    setsid /bin/sh -c "$towline_script" "$towline_dir" >&6 3<&- 4>&- 6>&- &
    towline_child=$! towline_group=-$! towline_own=yes
else
    set -m
    /bin/sh -c "$towline_script" "$towline_dir" >&6 3<&- 4>&- 6>&- &
    towline_child=$! towline_group=$! towline_own=
    set +m
    if kill -0 "-$towline_child"; then
        towline_group=-$towline_child towline_own=yes
    elif kill -0 "-$$"; then
        towline_group=-$$
    fi
fi

towline_watcher=
if [ "$towline_mode" != survive ]; then
    trap 'trap "" HUP INT PIPE TERM; towline_end >/dev/null 4>&- 6>&- 7>&- &' HUP INT PIPE TERM
    (
        while read -r _; do :; done
        towline_end
    ) <&3 >/dev/null 4>&- 6>&- 7>&- &
    towline_watcher=$!
fi
exec 3<&-

# A signal to this shell ends `wait` too; the script is over when it is gone.
while wait "$towline_child"; towline_code=$?; [ "$towline_code" -gt 128 ] && kill -0 "$towline_child"; do :; done

if [ "$towline_mode" = survive ]; then
    cat "$towline_dir/stdout"
    cat "$towline_dir/stderr" >&4
else
    trap '' HUP INT PIPE TERM
    [ -n "$towline_own" ] || kill -TERM "$towline_group"
    [ -z "$towline_own" ] || kill -KILL "$towline_group"
    kill -KILL "$towline_watcher"
fi
rm -rf "$towline_dir"
printf 'towline-%s-end:%d\n' "$towline_nonce" "$towline_code" >&4
printf 'towline-%s-end:%d\n' "$towline_nonce" "$towline_code"
exit 0
