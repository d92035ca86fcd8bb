#!/bin/sh
# poll.sh ROOT SQUEUE_FORMAT SACCT_FIELDS QUERIES JOBS ACCOUNTS PASTS: looks at any number of attempts. The last four are lines:
# QUERIES has `CLUSTER ID,ID,… ARRAY,ARRAY,… WHOSE` for each query (`-` for the cluster that answers by itself, and for no
# arrays among the ids; WHOSE is `own`, or `any` when jobs of others are asked for, too), ACCOUNTS `CLUSTER ARRAY,ARRAY,…`
# for arrays that accounting is asked for, too, and PASTS `CLUSTER ID,ID,…` for jobs whose ids the queue gave to others. JOBS has `JOB ATTEMPT TASK` for each attempt whose files are wanted (`-`
# for a job that is no task of an array), and `CLUSTER/ID` behind it where they are wanted only if the queue does not have
# it waiting.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/frames.sh
. ./frames.sh
# shellcheck source=src/towline/slurm/scripts/imports.sh
. ./imports.sh

# fold ARRAYS START END PLACE: an array has a row for each task that began. Of those in one state the first stays, the others
# become one row `ID_[1-3,7]|STATE|…` with the earliest start and the latest end (in columns START and END). Tasks of
# different directories (column PLACE) are of different arrays, for ids come again.
fold() {
    [ "$1" != - ] || return 0
    awk -v arrays="$1" -v start="$2" -v end="$3" -v place="$4" '
        BEGIN {
            FS = OFS = "|"
            split(arrays, list, ",")
            for (i in list) wanted[list[i]] = 1
        }
        {
            base = $1
            sub(/_.*/, "", base)
            if ($1 !~ /^[0-9]+_[0-9]+$/ || !(base in wanted)) { print; next }
            key = base SUBSEP $2 SUBSEP $place
            if (!(key in columns)) { print; columns[key] = NF; next }
            task = substr($1, length(base) + 2) + 0
            if (!(key in low)) { low[key] = high[key] = task; keys[++count] = key }
            if (task < low[key]) low[key] = task
            if (task > high[key]) high[key] = task
            member[key, task] = 1
            if ($start ~ /^[0-9]+$/ && (!(key in begun) || $start < begun[key])) begun[key] = $start
            if ($end ~ /^[0-9]+$/ && $end > ended[key]) ended[key] = $end
        }
        END {
            for (i = 1; i <= count; i++) {
                key = keys[i]
                text = ""
                for (task = low[key]; task <= high[key]; task++) {
                    if (!((key, task) in member)) continue
                    for (last = task; (key, last + 1) in member; last++);
                    text = text (text == "" ? "" : ",") task (last > task ? "-" last : "")
                    task = last
                }
                split(key, parts, SUBSEP)
                row = parts[1] "_[" text "]" OFS parts[2]
                for (column = 3; column <= columns[key]; column++)
                    row = row OFS (column == start ? begun[key] : column == end ? ended[key] : column == place ? parts[3] : "")
                print row
            }
        }' "$tl_to.out" >./ask.folded && mv ./ask.folded "$tl_to.out"
}

# query CLUSTER IDS ARRAYS WHOSE: asks the queue, and takes the answer to the question before meanwhile: what a question
# takes is mostly the controller's time. No more than two are asked at once. A controller that is away takes nine seconds
# to fail, so a cluster that was found so is not asked again in this poll.
query() {
    if [ "$1" = "$tl_away" ]; then
        tl_asking="$tl_refusal $*"
    else
        tl_number=$((tl_number + 1))
        tl_to=./ask.$tl_number
        ask_queue "$@" &
        tl_asking="$tl_number $! $*"
    fi
    take_answer
    tl_asked=$tl_asking
}

# ask_queue CLUSTER IDS ARRAYS WHOSE: the answer goes to $tl_to.out and $tl_to.err.
ask_queue() {
    where_whose "$1" "$4"
    inquire squeue "$1" "$2" squeue ${tl_where:+"$tl_where"} ${tl_whose:+"$tl_whose"} --noheader --all --states=all \
        "--format=$tl_format${tl_whose:+|%Z}" "--jobs=$2"
    fold "$3" 4 5 9
    return "$tl_code"
}

# take_answer: waits for the answer to the last question; a line `N CODE CLUSTER IDS ARRAYS WHOSE` goes to ./asked.
take_answer() {
    [ -n "$tl_asked" ] || return 0
    # shellcheck disable=SC2086 # words without blanks and patterns
    set -- $tl_asked
    if [ "$1 $2" = "$tl_refusal" ]; then
        tl_code=1
    else
        wait "$2"
        tl_code=$?
        if [ "$tl_code" -ne 0 ] && ! grep -qi 'invalid job id' "./ask.$1.err"; then tl_away=$3 tl_refusal="$1 $2"; fi
    fi
    printf '%s\n' "$1 $tl_code $3 $4 $5 $6" >>./asked
}

# where_whose CLUSTER WHOSE: sets the options for it. Ids come again, and then mostly for somebody else's job. Of own jobs
# the directory is asked for, too, by which another job of the same id is known; what others call theirs can be anything.
where_whose() {
    tl_where='' tl_whose=''
    [ "$1" = - ] || tl_where=--clusters=$1
    [ "$2" = any ] || tl_whose=--user=$tl_user
}

# sort_out: shows the time and what the queue has answered. To ./gone go lines `CLUSTER IDS WHOSE` of those that are not alive, for
# accounting to tell about, as few as there can be with 500 ids each; arrays are left out, since some of their tasks have always ended. To ./due go the attempts
# whose files are looked at. All in one process: to start one is most of what it costs.
sort_out() {
    awk -v most=500 '
        BEGIN {
            split("COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY REVOKED", words, " ")
            for (i in words) over[words[i]] = 1
        }
        FILENAME == ARGV[1] { print; next }
        FILENAME == ARGV[3] {
            if (NF && (NF < 4 || !($4 in waits))) print $1, $2, $3 >"./due"
            next
        }
        {
            print "@query " $2 " squeue " $3 " " $4
            split("", alive)
            split($5, words, ",")
            for (i in words) alive[words[i]]
            out = "./ask." $1 ".out"
            while ((getline line < out) > 0) {
                print ">" line
                id = substr(line, 1, index(line, "|") - 1)
                word = substr(line, length(id) + 2)
                word = substr(word, 1, index(word, "|") - 1)
                if (word == "PENDING") waits[$3 "/" id]
                if (word in over || id !~ /^[0-9]/) continue
                alive[id]
                if (sub(/[_+].*/, "", id)) alive[id]
            }
            close(out)
            told = $2 == 0
            err = "./ask." $1 ".err"
            while ((getline line < err) > 0) {
                print "!" line
                if (tolower(line) ~ /invalid job id/) told = 1
            }
            close(err)
            if (!told) next
            count = split($4, ids, ",")
            for (i = 1; i <= count; i++) {
                if (ids[i] in alive) continue
                at = $3 SUBSEP $6
                gone[at] = gone[at] (gone[at] == "" ? "" : ",") ids[i]
                if (++missing[at] % most == 0) bury(at)
            }
        }
        function bury(at) {
            if (gone[at] == "") return
            split(at, words, SUBSEP)
            print words[1], gone[at], words[2] >"./gone"
            gone[at] = ""
        }
        END { for (at in gone) bury(at) }' ./now ./asked ./jobs
}

# bury CLUSTER IDS WHOSE: what accounting has of those that are not alive in the queue.
bury() {
    where_whose "$1" "$3"
    ask sacct "$1" "$2" sacct ${tl_where:+"$tl_where"} ${tl_whose:+"$tl_whose"} --allocations --duplicates --noheader \
        --parsable2 "--format=$tl_fields${tl_whose:+,WorkDir}" "--jobs=$2"
}

# past CLUSTER IDS: what accounting has of jobs, whatever the queue has under their ids.
past() { bury "$1" "$2" own; }

# account CLUSTER ARRAYS: the newest run of each task. Runs before a requeue are left out, for they could not be told
# from the newest once the rows are folded.
account() {
    where_whose "$1" own
    inquire sacct "$1" "$2" sacct ${tl_where:+"$tl_where"} "$tl_whose" --allocations --noheader --parsable2 \
        "--format=$tl_fields,WorkDir" "--jobs=$2"
    fold "$2" 5 6 8
    answer
}

# look JOB ATTEMPT TASK: heads for the attempt and those after it, and the list of files to show.
look() {
    tl_dir=$tl_root/jobs/$1
    tl_of=
    [ "$3" = - ] || tl_of=/task-$3
    tl_newest=0
    tl_next=$2
    while [ -d "$tl_dir/attempts/$tl_next$tl_of" ]; do
        if [ "$tl_next" -eq "$2" ] || has_job "$tl_dir/attempts/$tl_next"; then tl_newest=$tl_next; fi
        tl_next=$((tl_next + 1))
    done
    tl_present=no tl_cancelled=no tl_secrets=no
    [ -d "$tl_dir" ] && tl_present=yes
    if [ -e "$tl_dir/cancelled" ] || [ -e "$tl_dir/cancelled-$3" ]; then tl_cancelled=yes; fi
    [ -e "$tl_dir/secrets" ] && tl_secrets=yes
    describe "$1" "$2" "$3"
    tl_next=$2
    while [ "$tl_next" -lt "$tl_newest" ]; do
        tl_next=$((tl_next + 1))
        describe "$1" "$tl_next" "$3"
    done
    if [ "$3" != - ]; then return; fi
    if [ -f "$tl_dir/attempts/$2/start" ]; then report "$1" "$2"; else awaited "$1"; fi
}

# has_job DIR: whether Slurm has had this attempt. A submission that was refused leaves its directory.
has_job() {
    [ -e "$1$tl_of/start" ] || { [ -z "$tl_of" ] && { [ -e "$1/submit" ] || [ -e "$1/claim" ]; }; }
}

# describe JOB ATTEMPT TASK: one attempt of look's. Links and devices are a job's tricks.
describe() {
    tl_contested=no
    # Two claims may have made two jobs; see single_out in attempt.sh.
    [ -e "$tl_dir/attempts/$2/submitter.2" ] && [ ! -e "$tl_dir/attempts/$2/single" ] && tl_contested=yes
    printf '@job %s %s %s %s %s %s %s %s\n' "$1" "$2" "$3" "$tl_present" "$tl_cancelled" "$tl_newest" "$tl_secrets" "$tl_contested"
    for tl_file in submit claim start signal decision end exit/first; do
        case $tl_file in
        submit | claim) tl_path=$tl_dir/attempts/$2/$tl_file ;; # of the whole array
        *) tl_path=$tl_dir/attempts/$2$tl_of/$tl_file ;;
        esac
        if [ -f "$tl_path" ] && [ ! -h "$tl_path" ]; then
            printf '%s %s %s %s %s\n' "$1" "$2" "$3" "$tl_file" "$tl_path" >>./shown
        fi
    done
}

# awaited JOB: how the things are doing that are made for a job which has not begun.
awaited() {
    [ -f "$tl_dir/script/images" ] || [ -f "$tl_dir/script/inputs" ] || return 0
    needs "$tl_dir" >./needs
    while read -r tl_reference tl_within tl_name; do
        tell_progress "$1" "$tl_reference" "$tl_within/imports/$tl_name"
    done <./needs
}

# report JOB ATTEMPT: the end of what the job says of its progress, and whether this attempt has said it.
report() {
    tl_report=
    for tl_path in "$tl_dir/results/status.json" "$tl_dir/results/"*/status.json; do
        if [ -f "$tl_path" ] && [ ! -h "$tl_path" ]; then
            tl_report=$tl_path
            break
        fi
    done
    [ -n "$tl_report" ] || return 0
    tl_fresh=yes
    [ "$2" = 1 ] || [ -n "$(find "$tl_report" -newer "$tl_dir/attempts/$2/start" 2>/dev/null)" ] || tl_fresh=no
    printf '@report %s %s %s\n' "$1" "$2" "$tl_fresh"
    tail -c "$tl_most" "$tl_report" 2>/dev/null | sed 's/^/>/'
    echo
}

# show: the files' first lines, in frames.
show() {
    awk '{
        path = $0
        sub(/^[^ ]* [^ ]* [^ ]* [^ ]* /, "", path)
        print "@file " $1 " " $2 " " $3 " " $4
        for (count = 0; count < 50 && (getline line < path) > 0; count++) print ">" substr(line, 1, 500)
        close(path)
    }' ./shown
}

# who_asks: sets this user's number; where the kernel tells it, no process is started for it.
who_asks() {
    tl_user=
    if [ -r /proc/self/status ]; then
        while read -r tl_key tl_value _; do
            if [ "$tl_key" = Uid: ]; then tl_user=$tl_value && break; fi
        done </proc/self/status
    fi
    : "${tl_user:=$(id -u)}"
}

# each FUNCTION LINES: calls the function with the words of each line.
each() {
    tl_ifs=$IFS
    IFS='
'
    for tl_line in $2; do
        IFS=$tl_ifs
        # shellcheck disable=SC2086 # words without blanks and patterns
        "$1" $tl_line
    done
    IFS=$tl_ifs
}

tl_root=$1 tl_format=$2 tl_fields=$3 tl_away='' tl_refusal='' tl_asked='' tl_number=0
who_asks
date '+@now %s' >./now &
printf '' >./asked
printf '%s\n' "$5" >./jobs
[ -z "$4$6$7" ] || find_slurm
each query "$4"
take_answer
tl_to=./ask
wait
sort_out
[ ! -s ./gone ] || each bury "$(cat ./gone)"
each account "$6"
each past "$7"
if [ -s ./due ]; then
    tl_most=16384 # bytes of each report
    [ "$(wc -l <./due)" -le 50 ] || tl_most=4096
    printf '' >./shown
    each look "$(cat ./due)"
    show
fi
echo @end
