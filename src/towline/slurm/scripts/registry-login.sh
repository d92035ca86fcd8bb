#!/bin/sh
# registry-login.sh [REGISTRY USER]: writes the lines of ./lines into Enroot's credentials file; other lines stay as they are.
# A line takes the place of one for the same registry and user, and stands before those of other users, for Enroot
# takes the first. With a registry it is asked first whether it lets the user in with them (a frame `check`), and when it
# refuses them, nothing is written. Nothing of the file's secrets is printed.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh
# shellcheck source=src/towline/slurm/scripts/registry.sh
. ./registry.sh

tl_place=$(credentials_file)
tl_folder=${tl_place%/*}
[ ! -h "$tl_place" ] || tl_place=$(readlink -f "$tl_place")
tl_before=$tl_place
[ -e "$tl_place" ] || tl_before=/dev/null
awk '
    FILENAME == "./lines" { machines[++count] = $2; fresh[$2] = $0; user[$2] = $4; next }
    $1 == "machine" && $2 in fresh {
        if (!($2 in done)) { print fresh[$2]; done[$2] = 1 }
        if ($3 == "login" && $4 == user[$2]) next
    }
    { print }
    END { for (i = 1; i <= count; i++) if (!(machines[i] in done)) print fresh[machines[i]] }
' ./lines "$tl_before" >./merged || exit 45

# refuses REGISTRY USER: where one of these lines was used, and got no token, or not in.
refuses() {
    tl_credentials=./merged
    ask "$1" /v2/ "$2"
    case ${tl_token:-$tl_code} in 401 | 403) ;; *) return 1 ;; esac
    [ -n "$tl_line" ] && grep -qF "machine ${tl_line%% *} login " ./lines
}

if [ $# -gt 0 ] && refuses "$@"; then
    credentials
    echo @end
    exit
fi
tl_fresh=$tl_place.towline.$$
trap 'rm -f "$tl_fresh"' EXIT
mkdir -p "$tl_folder" && cat ./merged >"$tl_fresh" && chmod 600 "$tl_fresh" && mv -f "$tl_fresh" "$tl_place" || exit 45
credentials
echo @end
