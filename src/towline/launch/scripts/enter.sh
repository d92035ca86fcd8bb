#!/bin/sh
# On a node of a running job, in a step of its own: /bin/sh <job directory>/inside/<name>/enter
#
# Goes into the container of one of its ranks, if it has one, and on to `inner`. `place` says which rank, and which process
# that is. Pyxis joins containers that have a name only; Enroot enters that of any process (enroot-exec(1)).
set -u
here=${0%/*}
in_pid='' in_rank='' in_node='' in_container=''
# shellcheck source=/dev/null
. "$here/place"
PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin

if ! kill -0 "$in_pid" 2>/dev/null; then
    printf 'towline: rank %s is not running any more on %s\n' "$in_rank" "$in_node" >&2
    exit 1
fi
[ -n "$in_container" ] || exec /bin/sh "$here/inner"
if command -v enroot >/dev/null; then exec enroot exec "$in_pid" /bin/sh "$here/inner"; fi
exec nsenter --target "$in_pid" --user --mount --preserve-credentials /bin/sh "$here/inner"
