# Say whether a path is there, and what a directory holds.
#
# Arguments: the path; "all" for what a directory holds.
# Output, each item ended by a NUL byte: "directory" or "file"; then the names in the directory, sorted.
# Exit codes: 0; 44 there is nothing of that name, or it may not be seen; 45 the directory cannot be listed.

export LC_ALL=C
if [ -d "$1" ]; then
    printf 'directory\0'
    [ "$2" = all ] || exit 0
    cd "$1" 2>/dev/null && [ -r . ] || exit 45
    find . -mindepth 1 -maxdepth 1 -printf '%f\0' | sort -z
elif [ -e "$1" ] || [ -h "$1" ]; then
    printf 'file\0'
else
    exit 44
fi
