#!/bin/sh
# The Python of this host.

# find_python WANTED: sets tl_python to WANTED, or to a Python 3 of the system's where none is wanted. Nothing stands in for
# one that is wanted: it was named for what others lack.
find_python() {
    [ -n "$1" ] || set -- python3 /usr/libexec/platform-python /usr/bin/python3 python
    for tl_python in "$@"; do
        if "$tl_python" -c 'import sys; sys.exit(sys.version_info < (3, 6))' >/dev/null 2>&1 </dev/null; then return 0; fi
    done
    tl_python=
    return 1
}
