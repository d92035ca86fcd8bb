#!/bin/sh
# check.sh: whether everything in ./required is there; changes nothing.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/required.sh
. ./required.sh

check_required
