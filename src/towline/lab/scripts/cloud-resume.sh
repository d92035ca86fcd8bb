#!/bin/sh
# Slurm's ResumeProgram: asks each node in a host list to boot. Runs as user slurm on the controller.
state=$(dirname "$(dirname "$0")")
for node in $(scontrol show hostnames "$1"); do
    [ -e "$state/state/faults/noboot.$node" ] || printf 'on\n' >"$state/run/power/$node"
done
