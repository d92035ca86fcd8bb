# List the regular files below a job's results directory.
#
# Arguments: job directory.
# Output: records "<size> <modified, seconds since 1970> <path below results>", each ended by a NUL byte.
# Exit codes: 0; 44 the results directory is missing.

cd "$1/results" 2>/dev/null || exit 44
find . -type f -printf '%s %T@ %P\0'
