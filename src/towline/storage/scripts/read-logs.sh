# Print what was added to log files since given offsets, and say which attempt is the newest.
#
# Arguments: job directory, attempt number, number of an array's task or nothing, most bytes per file, then pairs of a
# file name in attempts/<n>/ and an offset in bytes.
# Output: a line "newest <n>", a line "end <0|1>" (whether the attempt wrote its end), then for each
# file a line "file <name> <size> <count>" followed by exactly <count> bytes.
# A file that is missing has size -1. The slice is copied before it is counted, so that the count is
# right also when the file shrinks meanwhile.
# Exit codes: 0; 44 the job directory is missing.

directory=$1 attempt=$2 own=${3:+/task-$3} most=$4
shift 4
cd "$directory" 2>/dev/null || exit 44
slice=$OLDPWD/slice

newest=$attempt
while [ -d "attempts/$((newest + 1))$own" ]; do newest=$((newest + 1)); done
printf 'newest %d\n' "$newest"
# Asked before the logs are read: when it says 1, the logs below are whole.
if [ -e "attempts/$attempt$own/end" ]; then printf 'end 1\n'; else printf 'end 0\n'; fi

while [ $# -ge 2 ]; do
    path=attempts/$attempt/$1
    if [ -f "$path" ] && [ -r "$path" ]; then
        size=$(wc -c <"$path")
        count=0
        if [ "$size" -gt "$2" ]; then
            tail -c "+$(($2 + 1))" "$path" | head -c "$most" >"$slice"
            count=$(wc -c <"$slice")
        fi
        printf 'file %s %d %d\n' "$1" "$size" "$count"
        [ "$count" -eq 0 ] || cat "$slice"
    else
        printf 'file %s -1 0\n' "$1"
    fi
    shift 2
done
