#!/bin/sh
# What the container runtime needs of a lab host at boot: no containers of before, a place for Pyxis, and on hosts with GPUs
# /run/lab-gpu with what nvidia-smi reports.
# usage: host-setup.sh STATE-FOLDER NAME ROLE
set -eu
state=$1 name=$2 role=$3

rm -rf /run/containers/user-*/data /run/containers/user-*/runtime
mkdir -p /run/pyxis

case $role in gpu | cloud) ;; *) exit 0 ;; esac

here=/run/lab-gpu
faults=$state/state/faults/gpu.$name
mkdir -p "$here/faults" "$faults"
mount --bind "$faults" "$here/faults"
for index in $(seq 0 "$(($(cat "$state/runtime/gpus-per-node") - 1))"); do
    printf 'NVIDIA H100 80GB HBM3|GPU-%s-%04d-4000-8000-%012d|00000000:%02X:00.0|81559|550.127.05|12.4\n' \
        "$(printf '%s' "$name" | sha256sum | cut -c 1-8)" "$index" "$index" "$((27 + index * 16))"
done >"$here/gpus"
chmod -R a+rX "$here"
