#!/bin/sh
# Slurm's SuspendProgram: switches each node in a host list off.
state=$(dirname "$(dirname "$0")")
for node in $(scontrol show hostnames "$1"); do
    printf 'off\n' >"$state/run/power/$node"
done
