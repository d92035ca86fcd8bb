# shellcheck shell=sh
# shellcheck disable=SC2154  # the bootstrap line sets towline_dir
# shellcheck disable=SC2034  # the runner uses towline_served
#
# Serves one operation after another over one channel; appended to the runner. The first one came in this archive. A
# header line and an archive come for each of the others, as the bootstrap line would read them; `stop` in place of a
# header ends the one that runs. The end of stdin ends this shell, and the operation with it unless that one survives.
# No header may be sent before the answer to the last operation: `head` may read more than it hands on.

# Without it there is one process group for all that runs here: the first operation gets it, and the channel ends.
command -v setsid >/dev/null || towline_operation

towline_served=yes towline_job='' towline_turn=0
towline_spare=''  # an empty directory, made while an answer travels
towline_unpacked=$towline_dir

towline_leave() {
    trap '' HUP INT PIPE TERM
    if [ -n "$towline_job" ]; then
        kill -TERM "$towline_job"
        wait "$towline_job"
    fi
    for towline_dir in "$towline_unpacked" "$towline_spare"; do
        [ -z "$towline_dir" ] || rm -rf "$towline_dir"
    done
    exit 0
}

# make [PARENT]: prints the path of a new directory for an operation.
towline_make() {
    towline_parent=${1:-${TMPDIR:-/tmp}}
    towline_made=$(mktemp -d "$towline_parent/.towline-XXXXXX" 2>&1) || {
        printf 'cannot make a directory in %s: %s\n' "$towline_parent" "$towline_made" >&2
        return 1
    }
    mkdir "$towline_made/files" && printf '' >"$towline_made/args" && printf '%s\n' "$towline_made"
}

# What an operation leaves behind is nothing. One that came as text has lent the spare directory and leaves that
# empty for the next, for starting programs is most of what a small operation costs.
towline_clear() {
    if [ "$towline_dir" = "$towline_spare" ] && [ $((towline_turn % 64)) -ne 0 ]; then
        : >"$towline_dir/stdout$towline_turn"
        : >"$towline_dir/stderr$towline_turn"
        for towline_left in "$towline_dir/files"/* "$towline_dir/files"/.[!.]* "$towline_dir/files"/..?*; do
            if [ -e "$towline_left" ] || [ -L "$towline_left" ]; then break; fi
            towline_left=
        done
        [ -n "$towline_left" ] || return
    fi
    rm -rf "$towline_dir"
}

# An operation without files comes as its script alone, which does nothing unless its last byte is there. Its output
# has files of its own: what an earlier one left running may write on.
towline_text() {
    [ -d "$towline_spare" ] || towline_spare=$(towline_make) || return
    towline_unpacked=$towline_spare towline_turn=$((towline_turn + 1))
    [ "$towline_mode" != survive ] || towline_spare=
    head -c "$towline_size" <&3 >"$towline_unpacked/script"
}

towline_archive() {
    if [ -z "$towline_where" ] && [ -d "$towline_spare" ]; then
        towline_unpacked=$towline_spare towline_spare=
    else
        towline_unpacked=$(towline_make "$towline_where") || return
    fi
    head -c "$towline_size" <&3 | tar xmf - -C "$towline_unpacked"
    # What an archive that cannot be unpacked left on stdin is no header: that is the channel's end.
    [ -f "$towline_unpacked/go" ]
}

trap - EXIT
trap towline_leave HUP INT PIPE TERM
while :; do
    towline_dir=$towline_unpacked
    (towline_operation) 3<&- &
    towline_job=
    [ "$towline_mode" = survive ] || towline_job=$!
    towline_unpacked=''
    [ -n "$towline_spare" ] || towline_spare=$(towline_make)
    while read -r towline_nonce towline_size towline_mode towline_where <&3 || towline_leave; do
        [ "$towline_nonce" = stop ] || break
        [ -z "$towline_job" ] || kill -TERM "$towline_job"
    done
    [ -z "$towline_job" ] || wait "$towline_job"
    towline_job=
    if [ "$towline_where" = - ]; then towline_text; else towline_archive; fi 2>&4 || {
        printf 'towline-%s-refused\n' "$towline_nonce"
        towline_leave
    }
done
