#!/bin/sh
# The Python of this host.

# find_python WANTED: sets tl_python to WANTED if that is there, else to a Python 3 of the system's.
find_python() {
    for tl_python in ${1:+"$1"} python3 /usr/libexec/platform-python /usr/bin/python3 python; do
        if "$tl_python" -c 'import sys; sys.exit(sys.version_info < (3, 6))' >/dev/null 2>&1 </dev/null; then return 0; fi
    done
    tl_python=
    return 1
}
