#!/bin/sh
# prepare.sh PLACE NAME ATTEMPT TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…: has one Slurm job make something, however many
# ask for it. ./files holds what goes into <place>/imports/<name>; the attempt is claimed as those of other jobs are.
# Prints `there` when somebody has made it since the caller looked.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/lookup.sh
. ./lookup.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/attempt.sh
. ./attempt.sh
# shellcheck source=src/towline/slurm/scripts/own.sh
. ./own.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

tl_within=$1 tl_import=$1/imports/$2 tl_name=$2
shift 2
find_slurm
if is_made "$tl_within" "$tl_name"; then
    echo there
    exit 0
fi
mkdir -p "$tl_import/attempts" "$tl_import/script" "$tl_import/slurm-logs" 2>./make.err || write_failed ./make.err
for tl_place in "$tl_within" "$tl_within/imports" "$tl_import" "$tl_import/script" "$tl_import/attempts"; do
    check_own "$tl_place"
done
# Others may write the same at the same time; each file appears whole.
for tl_path in ./files/*; do
    tl_part=$tl_import/script/.${tl_path##*/}.$tl_host.$$
    { cp "$tl_path" "$tl_part" && mv -f "$tl_part" "$tl_import/script/${tl_path##*/}"; } 2>./make.err || write_failed ./make.err
done
submit_attempt "$tl_import" "$@"
