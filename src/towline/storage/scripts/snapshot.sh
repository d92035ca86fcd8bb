# Make a directory that holds a working tree and never changes again, out of what is sent and an earlier one.
#
# Arguments: root, name of the snapshot, name of the earlier one ("-": only ask; empty: what is sent is all of it).
# ./tree has the files that are sent, ./gone the paths of the earlier one that are not in this one or are others, each
# ended by a NUL byte, ./links targets and paths of symbolic links, likewise, ./sums the SHA-256 of what is sent. This runs
# in <root>/code, if anything is sent.
# Files are hard links to those of the earlier one, so nothing may be written to them: everything loses its w.
# Exit codes: 0 it is there; 41 the place cannot be used; 42 it is not safely the user's own; 44 the snapshot, or the
# earlier one, is not there; 45 it could not be written; 46 a file is not what it was when its SHA-256 was taken.
# Output of the question: what limits writing there, as space.sh says it.

# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
umask 077
code=$1/code place=$1/code/$2 base=$3
mkdir -p "$code" || exit 41
facts=$(stat -c '%A %u' "$code")
case $facts in
d????w* | d???????w*) printf '%s can be written by others (%s)\n' "$code" "${facts% *}" >&2 && exit 42 ;;
d*" $(id -u)") ;;
*) printf '%s is no directory of your own\n' "$code" >&2 && exit 42 ;;
esac

# Its time says when it was last asked for. One that is there after that is not removed any more (remove.sh).
if [ -d "$place" ]; then
    touch -c "$place"
    [ ! -d "$place" ] || exit 0
fi
if [ "$base" = - ]; then
    space "$code"
    exit 44
fi

if [ -n "$base" ]; then
    [ -d "$code/$base" ] || exit 44
    # Where there are no hard links, everything has to be sent.
    cp -al "$code/$base" new 2>/dev/null || exit 44
    find new -type d -exec chmod u+w {} + || exit 45
    if [ -s gone ]; then
        (cd new && xargs -0 rm -f -- <../gone) || exit 45
        find new -depth -mindepth 1 -type d -empty -delete || exit 45
    fi
fi
if [ -d tree ]; then
    (cd tree && sha256sum -c ../sums) >/dev/null 2>sums.err || exit 46
    find tree -type f -exec chmod a-w {} + || exit 45
    if [ -d new ]; then cp -al tree/. new; else mv tree new; fi || exit 45
fi
[ -d new ] || mkdir new || exit 45
if [ -s links ]; then
    # shellcheck disable=SC2016  # it is the other shell that expands this
    (cd new && xargs -0 -n 2 sh -c 'case $2 in */*) mkdir -p "${2%/*}" ;; esac && ln -s -- "$1" "$2"' sh <../links) ||
        exit 45
fi
# A directory without w cannot be moved; it loses its own in the end.
find new -mindepth 1 -type d -exec chmod a-w {} + || exit 45
# Another call may have been faster; its directory has the same content.
if mv -T new "$place"; then
    chmod a-w "$place"
else
    find new -type d -exec chmod u+w {} +
    [ -d "$place" ] || exit 45
fi
