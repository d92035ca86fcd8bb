# Say what limits writing to a directory, after a transfer there had no room, and take away what that left half-made.
#
# Arguments: the directory; the name of the transfer's own directory in it, or nothing.
# Output: as space.sh has it.

# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
export LC_ALL=C
[ -z "$2" ] || rm -rf -- "${1:?}/$2"
space "$1"
