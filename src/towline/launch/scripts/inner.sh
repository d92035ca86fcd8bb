#!/bin/sh
# In a rank's container: takes over the rank's environment and working directory, and runs `command`.
here=${0%/*}
in_pid='' in_role='' in_task=''
# shellcheck source=/dev/null
. "$here/place"
in_here=$here in_term=${TERM-}

# The environment of the rank's prelude has a NUL behind each variable (proc(5)), and values may have newlines.
while IFS= read -r in_line; do
    case ${in_line%%=*} in
    '' | *[!A-Za-z0-9_]* | [0-9]* | PWD | OLDPWD | SHLVL | TERM | in_* | _) continue ;;
    esac
    case $in_line in *"$(printf '\001')"*) in_line=$(printf '%s\n' "$in_line" | tr '\001' '\n') ;; esac
    # shellcheck disable=SC2163  # a name and its value
    export "$in_line"
done <<END
$(tr '\000\n' '\n\001' <"/proc/$in_pid/environ" 2>/dev/null)
END
if [ -n "${TOWLINE_JOB_DIR-}" ]; then
    # shellcheck source=/dev/null
    . "$TOWLINE_JOB_DIR/script${in_role:+/roles/$in_role}/env"
    export TOWLINE_RESULTS_DIR="$TOWLINE_JOB_DIR/results${in_task:+/$in_task}"
fi
[ -z "$in_term" ] || export TERM="$in_term"
# Where the rank is, under the name that it has there.
if cd "/proc/$in_pid/cwd" 2>/dev/null; then cd "$(pwd -P)" || :; fi
unset in_line
# shellcheck source=/dev/null
. "$in_here/command"
