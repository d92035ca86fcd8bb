# Send a job's results as one tar stream.
#
# Arguments: job directory.
# Output: a line "<files> <bytes>", then a tar stream of the directory.
# tar says 1 when a file changed while it was read; that is no failure of the stream.
# Exit codes: 0; 44 the results directory is missing; 45 some files could not be read (tar's words on
# stderr); the rest was sent.

cd "$1/results" 2>/dev/null || exit 44
find . -type f -printf '%s\n' | awk '{ bytes += $1 } END { printf "%d %.0f\n", NR, bytes }'
tar -cf - -- .
case $? in
0 | 1) exit 0 ;;
*) exit 45 ;;
esac
