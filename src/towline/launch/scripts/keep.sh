# Keeps an allocation for a person's shell, which runs in a step beside this: until the client says that it is over (the
# file `released`), or has not renewed its lease (the file `lease`, with another text each time) for two minutes. No clock
# is compared: what counts is that the text changes.
lease=$TOWLINE_JOB_DIR/lease last='' quiet=0
until [ -e "$TOWLINE_JOB_DIR/released" ]; do
    now=
    [ ! -r "$lease" ] || read -r now <"$lease" || :
    if [ "$now" != "$last" ]; then
        last=$now quiet=0
    elif [ "$quiet" -ge 60 ]; then
        echo 'towline: nobody has renewed the lease for two minutes; the allocation ends' >&2
        exit 0
    fi
    quiet=$((quiet + 1))
    sleep 2
done
