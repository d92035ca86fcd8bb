# shellcheck shell=sh
# shellcheck disable=SC2154 # the setup line of the run's profile sets tl_chaos_*
#
# Read by the setup line of a chaos run's profile: the script that submits ends, loses an answer or stands still at one of
# the commands it runs. tl_chaos_at: which one, counted from 1; 0 for none. tl_chaos_do: `before` or `after` it the script
# is killed, `group-before` or `group-after` with all that it has started, `pause` it stands still for tl_chaos_seconds;
# `mute` has sbatch's answer lost. tl_chaos_count: a file for the count; tl_chaos_mark: one that says that it happened.

tl_chaos_end() {
    case $tl_chaos_do in
    "$1") kill -9 "$$" ;;
    "group-$1") kill -9 "-$$" ;;
    esac
}

tl_chaos() {
    command printf x >>"$tl_chaos_count"
    tl_chaos_now=$(command wc -c <"$tl_chaos_count")
    if [ "$tl_chaos_now" -eq "$tl_chaos_at" ]; then
        command printf '' >"$tl_chaos_mark"
        tl_chaos_end before
        [ "$tl_chaos_do" != pause ] || sleep "$tl_chaos_seconds"
    fi
    command "$@"
    tl_chaos_code=$?
    [ "$tl_chaos_now" -ne "$tl_chaos_at" ] || tl_chaos_end after
    return "$tl_chaos_code"
}

mkdir() { tl_chaos mkdir "$@"; }
mv() { tl_chaos mv "$@"; }
cp() { tl_chaos cp "$@"; }
rm() { tl_chaos rm "$@"; }
ln() { tl_chaos ln "$@"; }
cat() { tl_chaos cat "$@"; }
date() { tl_chaos date "$@"; }
grep() { tl_chaos grep "$@"; }
stat() { tl_chaos stat "$@"; }
printf() { tl_chaos printf "$@"; }
sed() { tl_chaos sed "$@"; }
squeue() { tl_chaos squeue "$@"; }
sacct() { tl_chaos sacct "$@"; }
timeout() {
    if [ "$tl_chaos_do" = mute ]; then
        command timeout "$@" >/dev/null
        echo 'Batch job submission failed: Socket timed out on send/recv operation' >&2
        return 1
    fi
    tl_chaos timeout "$@"
}
