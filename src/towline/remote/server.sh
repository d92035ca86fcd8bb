# shellcheck shell=sh
# shellcheck disable=SC2154  # the bootstrap line sets towline_dir
# shellcheck disable=SC2034  # the runner uses towline_served
#
# Serves one operation after another over one channel; appended to the runner. A header line and an archive come for
# each, as the bootstrap line would read them; `stop` in place of a header ends the one that runs. The end of stdin
# ends this shell, and the operation with it unless that one survives. Without `setsid` there is one process group for
# all that runs here; then the first operation gets it, and the channel ends with it.

towline_served=yes towline_base=$towline_dir towline_unpacked='' towline_job=''

towline_leave() {
    trap '' HUP INT PIPE TERM
    if [ -n "$towline_job" ]; then
        kill -TERM "$towline_job"
        wait "$towline_job"
    fi
    rm -rf "$towline_base" ${towline_unpacked:+"$towline_unpacked"}
    exit 0
}

# A directory for the next operation; the usual kind is made in advance, while an answer travels.
towline_directory() {
    [ -z "${towline_where-}" ] || { rm -rf "$towline_unpacked" && towline_unpacked=; }
    [ -n "$towline_unpacked" ] ||
        towline_unpacked=$(mktemp -d "${towline_where:-${TMPDIR:-/tmp}}/.towline-XXXXXX")
}

trap - EXIT
trap towline_leave HUP INT PIPE TERM
while read -r towline_nonce towline_size towline_mode towline_where <&3; do
    if [ "$towline_nonce" = stop ]; then
        [ -z "$towline_job" ] || kill -TERM "$towline_job"
        continue
    fi
    [ -z "$towline_job" ] || wait "$towline_job"
    towline_job=
    # What an archive that cannot be unpacked left on stdin is no header: that is the channel's end.
    {
        towline_directory && head -c "$towline_size" <&3 | tar xmf - -C "$towline_unpacked"
    } 2>&4
    if ! [ -f "$towline_unpacked/go" ]; then
        printf 'towline-%s-refused\n' "$towline_nonce"
        break
    fi
    towline_dir=$towline_unpacked
    if ! command -v setsid >/dev/null; then
        towline_served=
        rm -rf "$towline_base"
        towline_operation
    fi
    (towline_operation) 3<&- &
    [ "$towline_mode" = survive ] || towline_job=$!
    towline_unpacked='' towline_where=''
    towline_directory
done
towline_leave
