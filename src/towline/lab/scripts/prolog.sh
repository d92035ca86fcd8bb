#!/bin/sh
# Slurm's Prolog: fails on a node for as long as the fault switch for that node is there.
state=$(dirname "$(dirname "$0")")
[ ! -e "$state/state/faults/prolog.$(hostname)" ]
