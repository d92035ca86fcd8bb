#!/bin/sh
# Runs the Enroot that `towline lab up --enroot` was given, with the lab's settings in place of those beside it.
set -eu
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=src/towline/lab/runtime/enroot/config.sh
. "$here/config.sh"
load_config
set_default ENROOT_SYSCONF_PATH "$(readlink -f "$here/../../etc/enroot")"
given=$(readlink -f "$here/given")
# Its helpers are beside it.
PATH=$(dirname "$given"):$PATH
export PATH
exec "$given" "$@"
