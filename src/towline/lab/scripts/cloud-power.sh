#!/bin/sh
# The power switch of a cloud node: runs on the node as root, hears "on" and "off" over a named pipe from the controller,
# and starts or ends slurmd.
# usage: cloud-power.sh PIPE
pipe=$1
exec 3<>"$pipe" # also open for writing, so that reading never meets the end
daemon=
while read -r verb <&3; do
    case $verb in
    on)
        if [ -z "$daemon" ] || ! kill -0 "$daemon" 2>/dev/null; then
            # -b: as after a reboot, which is what Slurm waits for
            setsid slurmd -D -b 3<&- &
            daemon=$!
        fi
        ;;
    off)
        if [ -n "$daemon" ]; then
            kill "$daemon" 2>/dev/null
            wait "$daemon"
            daemon=
        fi
        ;;
    esac
done
