#!/bin/sh
# registry-check.sh REGISTRY REPOSITORY REFERENCE USER: asks for an image's manifest as Enroot would.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/enroot.sh
. ./enroot.sh
# shellcheck source=src/towline/slurm/scripts/registry.sh
. ./registry.sh

check_manifest "$@"
echo @end
