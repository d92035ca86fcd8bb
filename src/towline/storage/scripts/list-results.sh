# List the regular files below a job's results directory, and the directories that cannot be read.
#
# Arguments: job directory.
# Output: records "<f|d> <size> <modified, seconds since 1970> <path below results>", each ended by a NUL byte; d is a
# directory whose content cannot be listed.
# Exit codes: 0; 44 the results directory is missing.

cd "$1/results" 2>/dev/null || exit 44
find . \( -type d \( ! -readable -o ! -executable \) -printf 'd 0 %T@ %P\0' -prune \) -o \
    \( -type f -printf 'f %s %T@ %P\0' \)
