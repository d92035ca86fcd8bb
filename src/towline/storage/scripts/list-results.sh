# List what is below a job's results directory.
#
# Arguments: the results directory; the job's directory, if the job may not have ended, and its task.
# Output, each item ended by a NUL byte: the path of rsync or nothing; then for each entry two items,
#   "<kind> <size> <modified, seconds since 1970> <mode> <device and inode> <path below results>" and a link's target.
# The kind is find's %y (f file, d directory, l link …), or u for a directory whose content cannot be listed; an entry
#   of kind n has no path: while the job has not written its end its time is the file system's own now.
# Exit codes: 0; 44 the results directory is missing.

cd "$1" 2>/dev/null || exit 44
export LC_ALL=C
printf '%s\0' "$(command -v rsync)"
if [ -n "$2" ]; then
    newest=1
    while [ -d "$2/attempts/$((newest + 1))" ]; do newest=$((newest + 1)); done
    if [ ! -e "$2/attempts/$newest${3:+/task-$3}/end" ]; then
        probe=$2/.probe.$(uname -n).$$
        if (: >"$probe") 2>/dev/null; then now=$(stat -c %Y "$probe"); else now=$(date +%s); fi
        rm -f "$probe"
        printf 'n 0 %s 0 - \0\0' "$now"
    fi
fi
find . \( -type d \( ! -readable -o ! -executable \) -printf 'u 0 %T@ %m - %P\0\0' -prune \) -o \
    -printf '%y %s %T@ %m %D.%i %P\0%l\0'
