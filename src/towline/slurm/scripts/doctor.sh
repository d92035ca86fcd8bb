#!/bin/sh
# doctor.sh SINFO_FORMAT ROOT PROBE ROLE PARTITION OPTIONS…: all that one login host can tell in one round trip.
# PROBE is the name of a file: ROLE `write` makes it in the root, `look` says whether it is there, `remove` only
# takes it away. PARTITION may be `-`. OPTIONS are sbatch's, for asking whether it would take a job. ./python names the Python
# that is to ask sources of data; without that file it is the host's own.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/places.sh
. ./places.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh
# shellcheck source=src/towline/slurm/scripts/python.sh
. ./python.sh

tl_format=$1 tl_root=$2 tl_probe=$3 tl_role=$4 tl_partition=$5
shift 5
[ "$tl_partition" != - ] || tl_partition=

login() {
    tl_user=$(id -un 2>/dev/null || id -u)
    printf '@fact login\n>user %s\n>uid %s\n>host %s\n>shell %s\n>home %s\n' \
        "$tl_user" "$(id -u)" "$(uname -n)" "${SHELL:--}" "${HOME:--}"
    [ -w "${HOME:-/nonexistent}" ] && echo '>home-writable yes'
    printf '>groups %s\n' "$(id -Gn 2>/dev/null)"
}

root_facts() {
    tl_near=$(nearest "$tl_root")
    tl_is=missing
    [ -e "$tl_root" ] && tl_is=other
    [ -d "$tl_root" ] && tl_is=directory
    printf '@fact root\n>is %s\n>near %s\n>room %s\n' "$tl_is" "$tl_near" "$(room "$tl_root")"
    printf '>owner %s\n>mode %s\n>inode %s\n>mount %s\n' \
        "$(stat -c %u "$tl_near" 2>/dev/null)" "$(stat -c %a "$tl_near" 2>/dev/null)" \
        "$(stat -c %i "$tl_near" 2>/dev/null)" "$(df -P "$tl_near" 2>/dev/null | awk 'NR > 1 { print $1, $NF }' | tail -n 1)"
    case $tl_role in
    write)
        if (printf x >"$tl_near/$tl_probe") 2>./probe.err; then
            echo '>probe written'
        else
            sed 's/^.*: /!/' ./probe.err
            rm -f "$tl_near/$tl_probe"
        fi
        ;;
    look) if [ -e "$tl_near/$tl_probe" ]; then echo '>probe seen'; else echo '>probe unseen'; fi ;;
    esac
}

# lfs fails for what is not on Lustre.
quotas() {
    if command -v lfs >/dev/null 2>&1 && ask quota - - lfs quota -q -u "$tl_user" "$tl_near"; then return; fi
    if command -v quota >/dev/null 2>&1; then ask quota - - quota -w; fi
}

gpu_type() {
    sinfo --noheader ${tl_partition:+"--partition=$tl_partition"} --format=%G 2>/dev/null </dev/null |
        sed -n 's/.*gpu:\([^:,()]*[^0-9:,()][^:,()]*\):.*/\1/p' | head -n 1
}

# Whether sbatch would take a job of one node and a minute, without GPUs and with one in each way to ask for it.
trials() {
    ask trial-none - - sbatch --test-only --time=1 --nodes=1 --wrap=: "$@"
    ask trial-gres - - sbatch --test-only --time=1 --nodes=1 --gres=gpu:1 --wrap=: "$@"
    ask trial-gpus-per-node - - sbatch --test-only --time=1 --nodes=1 --gpus-per-node=1 --wrap=: "$@"
    tl_type=$(gpu_type)
    [ -z "$tl_type" ] || ask trial-gres-typed - - sbatch --test-only --time=1 --nodes=1 "--gres=gpu:$tl_type:1" --wrap=: "$@"
}

slurm() {
    printf '@fact slurm\n>path %s\n' "$(command -v sbatch)"
    for tl_name in srun squeue scancel sacct scontrol sinfo; do
        command -v "$tl_name" >/dev/null 2>&1 || printf '>missing %s\n' "$tl_name"
    done
    ask version - - sbatch --version
    ask config - - scontrol show config || return
    cp ./ask.out ./slurm.config
    ask partitions - - scontrol --oneliner show partition
    ask nodes - - sinfo --noheader --exact --all "--format=$tl_format"
    ask associations - - sacctmgr --noheader --parsable2 show associations "user=$tl_user" format=Cluster,Account,Partition,QOS,DefaultQOS
    ask accounting - - sacct --allocations --noheader --parsable2 --starttime=now --format=JobID
    trials "$@"
}

# Real Pyxis has its version as a text of its own in the plugin.
pyxis() {
    printf '@fact pyxis\n'
    srun --help 2>&1 </dev/null | sed -n 's/^[[:space:]]*\(--container-[a-z-]*\).*/>option \1/p'
    tl_stack=$(sed -n 's/^PlugStackConfig *= *\(\/.*\)/\1/p' ./slurm.config 2>/dev/null)
    tl_stack=${tl_stack:-/etc/slurm/plugstack.conf}
    tl_plugin=$(sed -n 's/^[[:space:]]*\(required\|optional\)[[:space:]]\{1,\}\([^[:space:]]*pyxis[^[:space:]]*\).*/\1 \2/p' \
        "$tl_stack" "$tl_stack.d"/* 2>/dev/null | tail -n 1)
    [ -n "$tl_plugin" ] || return 0
    printf '>plugin %s\n' "$tl_plugin"
    for tl_file in "${tl_plugin#* }" /usr/lib*/slurm/"${tl_plugin#* }" /usr/lib/*/slurm*/"${tl_plugin#* }"; do
        if [ -r "$tl_file" ]; then
            LC_ALL=C tr -c '0-9A-Za-z.+-' '\n' <"$tl_file" | sed -n 's/^v\{0,1\}\(0\.[0-9]\{1,\}\.[0-9]\{1,\}\)$/>version \1/p' | head -n 1
            return 0
        fi
    done
}

enroot_facts() {
    command -v enroot >/dev/null 2>&1 && ask enroot - - enroot version
    enroot_places
    credentials
}

# What brings data from elsewhere needs one, here to ask the sources.
python_facts() {
    find_python "$(cat ./python 2>/dev/null)" || return 0
    printf '@fact python\n>version %s\n' "$("$tl_python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null)"
}

if [ "$tl_role" = remove ]; then
    rm -f "$(nearest "$tl_root")/$tl_probe"
    echo @end
    exit 0
fi
login
root_facts
quotas
if (find_slurm) 2>./slurm.err; then
    find_slurm
    slurm "$@"
    pyxis
else
    printf '@fact no-slurm\n'
    sed 's/^/!/' ./slurm.err
fi
enroot_facts
python_facts
echo @end
