# Print what was added to a job's log files since given offsets, and which attempts there are.
#
# Arguments: job directory; number of an array's task or nothing; numbers of the first and the last attempt or nothing
# (without a first, the newest that has begun); how many last lines to begin with in files that have no offset given, or
# nothing; `share` or `turn` (whether all files that have grown share the answer, or the first has it); most bytes; how
# many bytes before the new ones to print, too; patterns of files in attempts/<n>/ with blanks between; then pairs of a
# file name in attempts/ and an offset in bytes, or "-" when no more of it is wanted.
# Output: for each attempt a line "attempt <n> <begun> <ended> <split>", each 0 or 1; a line "first <n>"; for each file
# that is longer or shorter than its offset a line "file <name> <size> <offset> <from> <count>"; a line "more" when there is
# more than is told; a line "data"; then <count> bytes of each file, beginning at <from>.
# Exit codes: 0; 44 the job directory is missing.

directory=$1 own=${2:+/task-$2} first=$3 last=$4 lines=$5 manner=$6 most=$7 memory=$8 patterns=$9
shift 9
furthest=16777216 # bytes at the end of a file that last lines are looked for in
cd "$directory" 2>/dev/null || exit 44
here=$OLDPWD
if ! cd attempts 2>/dev/null; then
    printf 'first 0\ndata\n'
    exit 0
fi
: >"$here/known"
[ $# -eq 0 ] || printf 'o %s %s\n' "$@" >"$here/known"

is_split() {
    for place in "$1$own/ranks" "$1$own/nodes" "$1"/roles/*/ranks "$1"/roles/*/nodes "$1"/task-*/ranks "$1"/task-*/nodes; do
        [ ! -d "$place" ] || return 0
    done
    return 1
}

# Whether every task of an array that has begun has ended.
all_ended() {
    for task in "$1"/task-*/start; do
        [ -e "$task" ] && [ -e "${task%/start}/end" ] || return 1
    done
}

# Asked before the logs are read: what ended then has its whole log below.
list=$(echo [0-9]*)
# shellcheck disable=SC2012  # numbers
[ ! -d 10 ] || list=$(ls | sort -n)
numbers='' newest=0 highest=0
for number in $list; do
    case $number in *[!0-9]* | 0*) continue ;; esac
    numbers="$numbers $number" highest=$number begun=0 ended=0 split=0
    if [ -e "$number$own/start" ] || [ -s "$number/main.out" ] || [ -s "$number/main.err" ]; then
        begun=1 newest=$number
    fi
    if [ -e "$number$own/end" ] || { [ -z "$own" ] && all_ended "$number"; }; then ended=1; fi
    if is_split "$number"; then split=1; fi
    printf 'attempt %s %s %s %s\n' "$number" "$begun" "$ended" "$split"
done
[ -n "$first" ] || first=$newest
[ "$first" -gt 0 ] || first=$highest
printf 'first %s\n' "$first"

# Only plain files: a pipe of that name would keep us, and a link that a job has made can lead to what is not its own.
paths='' count=0
for number in $numbers; do
    if [ "$number" -lt "$first" ] || [ "$number" -gt "${last:-$number}" ]; then continue; fi
    set -f
    for pattern in $patterns; do
        set +f
        for path in $number/$pattern; do
            case $path in *[!A-Za-z0-9_./-]*) continue ;; esac
            if [ -f "$path" ] && [ ! -h "$path" ] && [ -r "$path" ]; then paths="$paths $path" count=$((count + 1)); fi
        done
    done
done

# sizes: those of the files, with names as `wc` prints them. Opening a file makes a network file system ask for its size
# anew, which `ls` would not do. Few names need no `xargs`: to start programs is most of what a look costs.
sizes() {
    # shellcheck disable=SC2086  # names without blanks and patterns
    if [ "$count" -gt 100 ]; then
        printf '%s\n' $paths | xargs wc -c
    elif [ "$count" -gt 0 ]; then
        wc -c $paths
    fi
}

# begin_at NAME SIZE: prints the offset where its last lines begin.
begin_at() {
    if [ "$2" -eq 0 ]; then
        rest=0
    elif [ "$2" -le "$furthest" ]; then
        rest=$(head -c "$2" "$1" | tail -n "$lines" | wc -c)
    else
        rest=$(tail -c "+$(($2 - furthest + 1))" "$1" | head -c "$furthest" | tail -n "$lines" | wc -c)
    fi
    printf 'o %s %d\n' "$1" "$(($2 - rest))"
}

sizes >"$here/sizes" 2>/dev/null
if [ -n "$lines" ]; then
    while read -r size path; do
        case $path in */*) begin_at "$path" "$size" ;; esac
    done <"$here/sizes" >>"$here/known"
fi

awk -v most="$most" -v memory="$memory" -v manner="$manner" -v tail="$lines" '
    $1 == "o" { if ($3 == "-") over[$2] = 1; else known[$2] = $3 + 0; next }
    $2 in over || $2 !~ "/" { next } # as `wc` tells the total
    { size[$2] = $1 + 0; name[++files] = $2; if ($1 + 0 > known[$2] + 0) grown++ }
    END {
        share = manner == "share" && grown ? int(most / grown) : most
        if (share < 4096) share = 4096
        for (i = 1; i <= files; i++) {
            each = name[i]; at = known[each] + 0; count = size[each] - at
            # Where its last lines begin is told of each file once.
            if (count == 0 && tail == "") continue
            if (count > share) count = share
            if (manner == "turn" && count > most - used) count = most - used
            from = at
            if (count < 0) count = 0
            else from = at > memory ? at - memory : 0
            used += count; count += at - from; total += count
            printf "file %s %.0f %.0f %.0f %.0f\n", each, size[each], at, from, count
        }
        printf "total %.0f\n", total
    }' "$here/known" "$here/sizes" >"$here/plan"

total=0
: >"$here/slices"
while read -r word path _ _ from count; do
    case $word in
    total) total=$path ;;
    file)
        if [ "$count" -eq 0 ]; then
            continue
        elif [ "$from" -eq 0 ]; then
            head -c "$count" "$path"
        else
            tail -c "+$((from + 1))" "$path" | head -c "$count"
        fi >>"$here/slices"
        ;;
    esac
done <"$here/plan"
if [ "$total" -gt 0 ] && [ "$(wc -c <"$here/slices")" -ne "$total" ]; then
    # A file has shrunk meanwhile: the next look shows how it is then.
    printf 'more\ndata\n'
else
    while read -r word rest; do
        [ "$word" = total ] || printf '%s %s\n' "$word" "$rest"
    done <"$here/plan"
    printf 'data\n'
    [ "$total" -eq 0 ] || cat "$here/slices"
fi
rm -f "$here/slices" "$here/plan" "$here/sizes" "$here/known"
