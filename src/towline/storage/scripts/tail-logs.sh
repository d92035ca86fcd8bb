# Print the offset at which the last N lines of each log file begin.
#
# Arguments: job directory, attempt number, number of lines, then file names in attempts/<n>/.
# Output: for each file one line "<name> <offset>". A file that is missing begins at 0.
# Exit codes: 0; 44 the job directory is missing.

directory=$1 attempt=$2 lines=$3
shift 3
cd "$directory/attempts/$attempt" 2>/dev/null || exit 44
for name; do
    size=0 last=0
    if [ -f "$name" ] && [ -r "$name" ]; then
        size=$(wc -c <"$name")
        last=$(head -c "$size" "$name" | tail -n "$lines" | wc -c)
    fi
    printf '%s %d\n' "$name" "$((size - last))"
done
