# shellcheck shell=sh
# shellcheck disable=SC2154  # the supervisor sets them
# Read by the supervisor: small inputs from elsewhere that the job itself brings before its command starts.

# fetch_inputs: lines of script/fetch are `MOST URI`, the most bytes that one may have; `-` for any number. The n-th becomes
# inputs/<n>/data. What an earlier start has brought is there.
fetch_inputs() {
    [ -f "$TOWLINE_JOB_DIR/script/fetch" ] || return 0
    for tl_fetch_python in python3 /usr/libexec/platform-python ''; do
        [ -z "$tl_fetch_python" ] || ! "$tl_fetch_python" -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null </dev/null || break
    done
    tl_fetch_number=0
    while read -r tl_fetch_most tl_fetch_uri; do
        tl_fetch_place=$TOWLINE_JOB_DIR/inputs/$tl_fetch_number
        tl_fetch_number=$((tl_fetch_number + 1))
        [ ! -f "$tl_fetch_place/facts" ] || continue
        if ! fetch_one; then
            say "the command was not started: its input $tl_fetch_uri could not be brought"
            decide failed inputs 1
            return 1
        fi
    done <"$TOWLINE_JOB_DIR/script/fetch"
}

# fetch_one: with the job's own keys in the program's environment only.
fetch_one() {
    if [ -z "$tl_fetch_python" ]; then
        say "there is no Python 3.6 on this node to bring it with"
        return 1
    fi
    mkdir -p "$tl_fetch_place" && (
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/variables"
        # shellcheck source=/dev/null
        [ ! -f "$TOWLINE_JOB_DIR/secrets" ] || . "$TOWLINE_JOB_DIR/secrets"
        exec "$tl_fetch_python" "$TOWLINE_JOB_DIR/script/stager" bring "$tl_fetch_uri" "$tl_fetch_place" - '' - "$tl_fetch_most"
    ) >&2 </dev/null
}
