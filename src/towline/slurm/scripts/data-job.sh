#!/bin/sh
# The job that brings data from elsewhere: TOWLINE_JOB_DIR is <place>/imports/<name>, TOWLINE_ATTEMPT the attempt. What it is
# to bring stands in script/data: data_uri, data_name, data_version, data_tools, data_python, data_notes and data_setup (a shell
# line of the user's), and in the positional parameters a command that runs another one in a container, if there is one.
# script/stager is the program.
# Records below attempts/<n>: claim, stage, progress (bytes brought so far, seconds since the start, bytes a second), log
# (the program's words), end.
set -u
umask 077
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh
# shellcheck source=src/towline/slurm/scripts/preparing.sh
. ./preparing.sh
# shellcheck source=src/towline/slurm/scripts/python.sh
. ./python.sh

place=${TOWLINE_JOB_DIR%/imports/*}
data_uri='' data_name='' data_version='' data_tools='' data_python='' data_notes='' data_setup=''
# shellcheck source=/dev/null
. "$TOWLINE_JOB_DIR/script/data"
container=''
[ "$#" -eq 0 ] || container=yes
secrets=$TOWLINE_JOB_DIR/script/secrets-$TOWLINE_ATTEMPT
# Beside what it becomes, so that renaming is all that is left to do; no name begins with a dot.
part=$place/.$data_name.$SLURM_JOB_ID.part

# fail STAGE CODE: the last record; what was brought stays for the next attempt.
fail() {
    [ ! -f "$here/log" ] || cat "$here/log" >&2 2>/dev/null # a signal may come while the log is where errors go
    rm -f "$secrets"
    rmdir "$part/partial" "$part" 2>/dev/null
    put end "code=$2" "stage=$1" "place=$(room "$place") $place" "host=$(uname -n)" "python=$data_python" "container=$container"
    exit "$failed"
}

# shellcheck disable=SC2317  # called from a trap
stop() {
    trap '' TERM INT
    [ -z "$worker" ] || kill "$worker" 2>/dev/null
    fail stopped 143
}

# What an earlier job left is gone on with: renaming takes it away from one that was cut off and still runs.
adopt() {
    for old in "$place/.$data_name".*.part; do
        if [ ! -d "$old" ] || [ "$old" = "$part" ]; then continue; fi
        if [ -d "$part" ]; then rm -rf "$old"; else mv -T "$old" "$part" 2>/dev/null; fi
    done
    mkdir -p "$part" 2>>"$here/log"
}

# bring COMMAND…: with the keys in its environment only.
bring() {
    (
        # A step would get nothing of this environment under --export=NONE.
        export SLURM_EXPORT_ENV=ALL
        # shellcheck source=/dev/null
        . "$TOWLINE_JOB_DIR/script/variables"
        # shellcheck source=/dev/null
        [ ! -f "$secrets" ] || . "$secrets"
        exec "$@"
    )
}

# lacks_python COMMAND…: whether the container has no such Python; asked after a failure only, for it starts one more.
lacks_python() {
    [ "$#" -gt 0 ] || return 1
    # shellcheck disable=SC2016  # expanded in the container
    case $(bring "$@" sh -c 'command -v "$1" >/dev/null || echo "no python"' sh "$tl_python" </dev/null 2>/dev/null) in
    *"no python") return 0 ;;
    *) return 1 ;;
    esac
}

keep() {
    { printf '%s' "$data_notes" && cat "$part/facts" && printf 'made=%s\nslurm=%s\n' "$(date +%s)" "$SLURM_JOB_ID"; } >"$part/.note" &&
        rm -f "$part/facts" && mv -f "$part/.note" "$part/note" && mv -T "$part" "$place/$data_name"
}

claim
rm -f "$here/end" "$here/log" "$here/stage" "$here/progress"
for old in "$TOWLINE_JOB_DIR/script"/secrets-*; do
    [ "$old" = "$secrets" ] || rm -f "$old" # of attempts that were killed
done
trap stop TERM INT
# Another attempt may have brought it since this one was asked for.
if is_made "$place" "$data_name"; then
    rm -f "$secrets"
    put end "code=0" "stage=done" "host=$(uname -n)"
    exit 0
fi
put stage bring
adopt || fail space 1
[ -z "$data_setup" ] || eval "$data_setup" >/dev/null 2>&1 </dev/null
if [ "$#" -gt 0 ]; then
    tl_python=${data_python:-python3}
else
    find_python "$data_python" || fail no-python 127
fi
if ! run bring "$@" "$tl_python" "$TOWLINE_JOB_DIR/script/stager" bring "$data_uri" "$part" "$data_version" "$here/progress" "$data_tools"; then
    ! lacks_python "$@" || fail no-python 127
    fail bring "$code"
fi
put stage keep
keep 2>>"$here/log" || fail keep 1
rm -f "$secrets"
put end "code=0" "stage=done" "host=$(uname -n)"
