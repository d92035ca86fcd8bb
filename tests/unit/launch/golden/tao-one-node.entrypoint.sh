#!/bin/sh
if [ -z "${tl_by_bash-}" ] && command -v bash >/dev/null 2>&1; then tl_by_bash=1 exec bash "$0" "$@"; fi
unset tl_by_bash
python3 train.py | tee log
