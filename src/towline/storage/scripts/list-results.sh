# List what is below a job's results directory.
#
# Arguments: the results directory.
# Output, each item ended by a NUL byte: the path of rsync or nothing; then for each entry two items,
#   "<kind> <size> <modified, seconds since 1970> <mode> <device and inode> <path below results>" and a link's target.
# The kind is find's %y (f file, d directory, l link …), or u for a directory whose content cannot be listed.
# Exit codes: 0; 44 the results directory is missing.

cd "$1" 2>/dev/null || exit 44
export LC_ALL=C
printf '%s\0' "$(command -v rsync)"
find . \( -type d \( ! -readable -o ! -executable \) -printf 'u 0 %T@ %m - %P\0\0' -prune \) -o \
    -printf '%y %s %T@ %m %D.%i %P\0%l\0'
