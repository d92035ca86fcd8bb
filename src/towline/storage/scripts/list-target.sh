# Make the directory that files are pushed to, and list what is there.
#
# Arguments: the directory; a pattern of `find -path` for the only file that matters there, or nothing for all.
# Output, each item ended by a NUL byte: what limits writing there, as space.sh says it; then as list-results.sh has it.
# Exit codes: 0; 45 the directory cannot be made or entered.

# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
{ mkdir -p "$1" && cd "$1"; } || exit 45
export LC_ALL=C
printf '%s\0%s\0' "$(space "$1")" "$(command -v rsync)"
if [ -n "$2" ]; then
    find . -mindepth 1 -maxdepth 2 \( -path "$2" -o -path './.towline-push*' \) -printf '%y %s %T@ %m %D.%i %P\0%l\0'
else
    find . -printf '%y %s %T@ %m %D.%i %P\0%l\0'
fi
