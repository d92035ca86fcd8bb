# Send what the tasks of an array have made, as one tar stream: for each task results/<task>/return.json if it is there,
# else the log of its newest attempt's stdout (of its first rank or node, where these have logs of their own).
#
# Arguments: job directory. The file ./tasks has a task's number on each line.
# Output: a tar stream; empty when there is nothing. Links and devices are left out, for jobs write there.
# Exit codes: 0; 44 the job directory is missing; tar's own.

tasks=$PWD/tasks wanted=$PWD/wanted
cd "$1" 2>/dev/null || exit 44
while read -r task; do
    path=results/$task/return.json
    if [ ! -f "$path" ]; then
        newest=1
        while [ -d "attempts/$((newest + 1))/task-$task" ]; do newest=$((newest + 1)); done
        path=attempts/$newest/main-$task.out
        for own in "attempts/$newest/task-$task/ranks"/0-*.out "attempts/$newest/task-$task/nodes"/0-*.out; do
            [ ! -f "$own" ] || path=$own
        done
    fi
    if [ -f "$path" ] && [ ! -h "$path" ]; then printf '%s\n' "$path"; fi
done <"$tasks" >"$wanted"
[ -s "$wanted" ] || exit 0
tar -cf - -T "$wanted"
