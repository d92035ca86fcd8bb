#!/bin/sh
# prepare.sh PLACE NAME ATTEMPT TOKEN MESSAGE_TIMEOUT INTENT OWNER SBATCH…: has one Slurm job make something, however many
# ask for it. ./files holds what goes into <place>/imports/<name>; the attempt is claimed as those of other jobs are.
# Prints `there` when somebody has made it since the caller looked. With `here` for SBATCH this host makes it, and `here`
# is the answer.
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

# begin_here NUMBER: makes it in the background, as the one who got the attempt; the directory appears with its sign of life.
begin_here() {
    tl_new=$tl_import/.attempt.$tl_host.$$
    { mkdir "$tl_new" && printf '%s %s\n' "$tl_host" "$$" >"$tl_new/here"; } 2>./make.err || write_failed ./make.err
    if mv -T "$tl_new" "$tl_import/attempts/$1" 2>./make.err; then
        tl_here=here.$tl_host.$$
        TOWLINE_JOB_DIR=$tl_import TOWLINE_ATTEMPT=$1 SLURM_JOB_ID=$tl_here nohup setsid nice /bin/sh \
            "$tl_import/script/supervisor" </dev/null >"$tl_import/attempts/$1/main.err" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- &
    else
        rm -rf "$tl_new"
        [ -d "$tl_import/attempts/$1" ] || write_failed ./make.err
    fi
    echo here
}

tl_within=$1 tl_import=$1/imports/$2 tl_name=$2
shift 2
find_slurm
tl_target=$tl_within
[ ! -f ./files/target ] || tl_target=$(cat ./files/target)
if is_made "$tl_target" "$tl_name"; then
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
if [ "$6" = here ]; then
    begin_here "$1"
else
    submit_attempt "$tl_import" "$@"
fi
