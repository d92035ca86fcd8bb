#!/bin/sh
# The power switch of a cloud node: runs on the node as root, hears "on" and "off" over a named pipe from the controller,
# and starts or ends slurmd.
# usage: cloud-power.sh PIPE
pipe=$1
exec 3<>"$pipe" # also open for writing, so that reading never meets the end
off() {
    while pid=$(pidof -s slurmd); do
        kill "$pid"
        tail --pid="$pid" -s 0.1 -f /dev/null
    done
}
while read -r verb <&3; do
    off
    # -b: as after a reboot, which is what Slurm waits for. One that came up after ResumeTimeout still runs when Slurm, which
    # took it for lost, asks again; it would never report another boot.
    [ "$verb" != on ] || slurmd -b 3<&-
done
