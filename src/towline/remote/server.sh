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

towline_served=yes towline_unpacked=$towline_dir towline_job=''

towline_leave() {
    trap '' HUP INT PIPE TERM
    if [ -n "$towline_job" ]; then
        kill -TERM "$towline_job"
        wait "$towline_job"
    fi
    [ -z "$towline_unpacked" ] || rm -rf "$towline_unpacked"
    exit 0
}

# A directory for the next operation; the usual kind is made in advance, while an answer travels.
towline_directory() {
    [ -z "$towline_where" ] || { rm -rf "$towline_unpacked" && towline_unpacked=; }
    [ -n "$towline_unpacked" ] ||
        { towline_unpacked=$(mktemp -d "${towline_where:-${TMPDIR:-/tmp}}/.towline-XXXXXX") &&
            mkdir "$towline_unpacked/files"; }
}

# An operation without files comes as its script alone, which does nothing unless its last byte is there.
towline_text() {
    head -c "$towline_size" <&3 >"$towline_unpacked/script" &&
        printf '' >"$towline_unpacked/args" && printf '' >"$towline_unpacked/go"
}

trap - EXIT
trap towline_leave HUP INT PIPE TERM
while :; do
    towline_dir=$towline_unpacked
    (towline_operation) 3<&- &
    towline_job=
    [ "$towline_mode" = survive ] || towline_job=$!
    towline_unpacked='' towline_where=''
    towline_directory
    while read -r towline_nonce towline_size towline_mode towline_where <&3 || towline_leave; do
        [ "$towline_nonce" = stop ] || break
        [ -z "$towline_job" ] || kill -TERM "$towline_job"
    done
    [ -z "$towline_job" ] || wait "$towline_job"
    towline_job=
    if [ "$towline_where" = - ]; then
        towline_where=
        { towline_directory && towline_text; } 2>&4
    else
        { towline_directory && head -c "$towline_size" <&3 | tar xmf - -C "$towline_unpacked"; } 2>&4
    fi
    # What an archive that cannot be unpacked left on stdin is no header: that is the channel's end.
    [ -f "$towline_unpacked/go" ] || {
        printf 'towline-%s-refused\n' "$towline_nonce"
        towline_leave
    }
done
