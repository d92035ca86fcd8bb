#!/bin/sh
# The power switch of a cloud node: runs on the node as root, hears "on" and "off" over a named pipe from the controller,
# and starts or ends slurmd.
# usage: cloud-power.sh PIPE
pipe=$1
exec 3<>"$pipe" # also open for writing, so that reading never meets the end
while read -r verb <&3; do
    case $verb in
    # -b: as after a reboot, which is what Slurm waits for
    on) pidof slurmd >/dev/null || slurmd -b 3<&- ;;
    off) pidof slurmd >/dev/null && kill "$(pidof -s slurmd)" ;;
    esac
done
