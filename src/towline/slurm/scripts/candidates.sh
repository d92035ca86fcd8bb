#!/bin/sh
# candidates.sh PROBE ROLE: directories where a user's jobs could live. ROLE `write` leaves a file PROBE in each that
# can be written, `look` says which have it, `remove` takes it away.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/places.sh
. ./places.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh

tl_probe=$1 tl_role=$2
tl_user=$(id -un 2>/dev/null || id -u)

# Sites name their places in variables of the login shell, or have a directory for each user below a big one.
places() {
    for tl_name in TOWLINE_ROOT SCRATCH WORK WORKDIR PSCRATCH CSCRATCH PROJECT DATA GSCRATCH; do
        eval "printf '%s\n' \"\${$tl_name-}\""
    done
    # shellcheck disable=SC2016  # the login shell expands this
    "${SHELL:-/bin/sh}" -lc 'printf "%s\n" "$SCRATCH" "$WORK" "$PROJECT"' 2>/dev/null </dev/null
    { printf '%s\n' /lustre /scratch /work /fsx /gpfs /data /beegfs /ceph /shared; df -P 2>/dev/null | awk 'NR > 1 { print $NF }'; } |
        while IFS= read -r tl_base; do
            [ "$tl_base" != / ] || continue
            printf '%s\n' "$tl_base/$tl_user" "$tl_base/users/$tl_user" "$tl_base/home/$tl_user" "$tl_base/scratch/$tl_user"
        done
    printf '%s\n' "${HOME:-}"
}

printf '@fact candidates\n'
places | awk '/^\/./ && !seen[$0]++' | while IFS= read -r tl_path; do
    if [ ! -d "$tl_path" ] || [ ! -w "$tl_path" ]; then continue; fi
    case $tl_role in
    write) (: >"$tl_path/$tl_probe") 2>/dev/null && printf '>place %s %s\n' "$(room "$tl_path")" "$tl_path" ;;
    look) if [ -e "$tl_path/$tl_probe" ]; then printf '>place %s %s\n' "$(room "$tl_path")" "$tl_path"; fi ;;
    remove) rm -f "$tl_path/$tl_probe" ;;
    esac
done
echo @end
