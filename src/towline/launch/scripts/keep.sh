# Keeps an allocation for a person's shell, which runs in a step beside this: until the client says that it is over (the
# file `released`), or has not renewed its lease (the file `lease`, with another text each time) for two minutes. No clock
# is compared: what counts is that the text changes.
tl_lease=$TOWLINE_JOB_DIR/lease tl_last='' tl_quiet=0
until [ -e "$TOWLINE_JOB_DIR/released" ]; do
    tl_now=
    [ ! -r "$tl_lease" ] || read -r tl_now <"$tl_lease" || :
    if [ "$tl_now" != "$tl_last" ]; then
        tl_last=$tl_now tl_quiet=0
    elif [ "$tl_quiet" -ge 60 ]; then
        echo 'towline: nobody has renewed the lease for two minutes; the allocation ends' >&2
        exit 0
    fi
    tl_quiet=$((tl_quiet + 1))
    sleep 2
done
