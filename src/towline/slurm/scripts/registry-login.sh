#!/bin/sh
# registry-login.sh: writes the lines of ./lines into Enroot's credentials file; other lines stay as they are.
# A line takes the place of one for the same registry and user, and stands before those of other users, for Enroot
# takes the first. Nothing of the file's secrets is printed.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh

tl_file=$(credentials_file)
tl_folder=${tl_file%/*}
mkdir -p "$tl_folder" || exit 45
[ ! -h "$tl_file" ] || tl_file=$(readlink -f "$tl_file")
[ -e "$tl_file" ] || : >"$tl_file" || exit 45
tl_fresh=$tl_file.towline.$$
trap 'rm -f "$tl_fresh"' EXIT
awk '
    FILENAME == "./lines" { machines[++count] = $2; fresh[$2] = $0; user[$2] = $4; next }
    $1 == "machine" && $2 in fresh {
        if (!($2 in done)) { print fresh[$2]; done[$2] = 1 }
        if ($3 == "login" && $4 == user[$2]) next
    }
    { print }
    END { for (i = 1; i <= count; i++) if (!(machines[i] in done)) print fresh[machines[i]] }
' ./lines "$tl_file" >"$tl_fresh" || exit 45
chmod 600 "$tl_fresh" && mv -f "$tl_fresh" "$tl_file" || exit 45
credentials
echo @end
