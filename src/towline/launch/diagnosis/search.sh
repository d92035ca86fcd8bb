#!/bin/sh
# search.sh RULES FACTS SECONDS BYTES DIRECTORY [NAME…]: searches logs for the lines that the rules know, and judges by them.
#
# RULES: the compiled rules (launch/diagnosis/__init__.py), or their first seven columns and last line.
# FACTS: a file of facts beside the logs, one a line: `slurm state=TIMEOUT`, `slurm exit=0:53`, `end reason=exit`,
#   `end code=137`, `nodes node1 node2` (the allocation's, expanded), `rank 3` (that failed by itself first),
#   `at FILE NODE` (who wrote a log), `on RANK NODE`; /dev/null for none.
# SECONDS, BYTES: most time and most bytes to read. Of files that are too long, a quarter of their share is read at the
#   beginning and the rest at the end; the ends come first.
# NAME…: log files below the directory, and directories there whose *.err, *.out and *.log files are meant, in the order
#   in which equal lines count; all of the directory's when there is none.
# Output: lines of fields with tabs between them:
#   file FILE SIZE                 each file that was found, in order
#   partial FILE                   a file that was not read whole
#   hit RULE FILE OFFSET LINE      a line that a rule knows; the offset is in bytes (in lines where grep has no -b)
#   verdict CLASS RETRY BLAME RULE NODE RANK FILE OFFSET LINE
#                                  always, and last: `none no no - …` when nothing was found
# RETRY is yes, no or resume (only with a resume contract), BLAME yes or no: whether NODE is to be left out next time.
# An empty field is a `-`. Rules are ordered by cause, and the first one that knows a line wins over its echoes.
# POSIX, and grep's -a and -b and timeout where they are. Exit code 0, also when the time was over.
set -u
LC_ALL=C
export LC_ALL

rules=$1 seconds=$3 bytes=$4 directory=$5
tl_facts=$(cat "$2" 2>/dev/null)
export tl_facts
shift 5
[ $# -gt 0 ] || set -- .

# --- What to look for ------------------------------------------------------------------------------------------

# Of these texts each line has one that a rule knows. A search for them takes the same time whatever a log says, where one
# for all patterns takes milliseconds for each line that is like no other.
texts() {
    awk -F '\t' '$1 == "#" { gsub(/[|]/, "\n", $2); print $2 }' "$rules"
}

# A line may begin behind a carriage return of a progress bar, or behind colours. A harmless line is of no interest unless
# another rule knows it, too, or it tells that a program did nothing more (see follow).
patterns() {
    awk -F '\t' '
        BEGIN { begin = "(^|\r|\033\\[[0-9;]*m)" }
        $3 == "quote" || $3 == "log" && ($2 != "harmless" || $6 == "covers" || $6 == "place" || $6 == "follows") {
            pattern = $7
            if (substr(pattern, 1, 1) == "^") pattern = begin substr(pattern, 2)
            gsub(/\(\^\|/, "(^|\r|\033\\[[0-9;]*m|", pattern)
            print pattern
        }' "$rules"
}

# The judge: an awk program with every pattern as a constant, for awk compiles others again at each use. There is a
# function for each kind of line and turn: rules that are asked first, rules of their own, general ones.
judge() {
    awk -F '\t' '
        function literal(pattern) { gsub(/\//, "\\/", pattern); return "/" pattern "/" }
        $1 == "#" { next }
        {
            turn = 2
            if ($6 == "first") turn = 1
            if ($6 == "general" || $6 == "place" || $6 == "follows") turn = 3
            needs = ""
            if ($6 ~ /^with:/) needs = substr($6, 6)
            printf "BEGIN{name[%d]=\"%s\";class[%d]=\"%s\";retry[%d]=\"%s\";blame[%d]=\"%s\";strength[%d]=\"%s\";needs[%d]=\"%s\"}\n", \
                NR, $1, NR, $2, NR, $4, NR, $5, NR, $6, NR, needs
            kind = needs != "" && $3 != "last" ? $3 "_with" : $3
            body[kind, turn] = body[kind, turn] "if(" (kind ~ /_with$/ ? "after<" NR "&&" : "") "s~" literal($7) ")return " NR "\n"
        }
        END {
            count = split("log log_with last quote slurm slurm_with end", kinds, " ")
            for (i = 1; i <= count; i++) {
                print "function " kinds[i] "_rule(s" (kinds[i] ~ /_with$/ ? ",after" : "") "){"
                for (turn = 1; turn <= 3; turn++) printf "%s", body[kinds[i], turn]
                print "return 0}"
            }
            print "BEGIN{last=" NR "}"
        }' "$rules"
    cat <<'AWK'
function clean(s) {
    if (index(s, "\033")) gsub(/\033\[[0-9;?]*[A-Za-z]/, "", s)
    gsub(/[\001-\037\177]/, " ", s)
    return s
}
function shown(s) { return s == "" ? "-" : s }
# The node that a line names, of those of the job; else the one that wrote the file, the only one, or the rank's.
function node_of(s, file, rank, i, found, padded, several) {
    padded = " " s " "
    for (i = 1; i <= node_count; i++) {
        if (!index(padded, node[i]) || !match(padded, "(slurmstepd-|[^A-Za-z0-9.-])" node[i] "[^A-Za-z0-9-]")) continue
        if (found != "") several = 1
        found = node[i]
        if (match(s, "^(\\[?[a-z]+\\]? )?" node[i] ": ")) return node[i]  # who speaks
    }
    if (found != "" && !several) return found
    if (!node_count && match(s, /slurmstepd-[A-Za-z0-9.-]+:|srun: error: [A-Za-z0-9.-]+: task|ailure on [A-Za-z0-9.-]+/)) {
        found = substr(s, RSTART, RLENGTH)
        sub(/^(slurmstepd-|srun: error: |ailure on )/, "", found)
        sub(/:.*/, "", found)
        return found
    }
    if (file in place) return place[file]
    if (file ~ /(ranks|nodes)\/[0-9]+-[^\/]+\.(out|err)$/) {
        sub(/.*\/[0-9]+-/, "", file)
        sub(/\.(out|err)$/, "", file)
        return file
    }
    if (node_count == 1) return node[1]
    return rank != "" && (rank in on) ? on[rank] : ""
}
# Whether the line names a host and port to connect to, and the host is none of the job's.
function elsewhere(s, host, i, own) {
    if (!node_count || !match(s, /(to|at) [(\[]*[A-Za-z][A-Za-z0-9.-]*\]?[,:] ?[0-9]/)) return 0
    host = substr(s, RSTART + 3, RLENGTH - 3)
    sub(/^[(\[]*/, "", host)
    sub(/[^A-Za-z0-9-].*/, "", host)
    for (i = 1; i <= node_count; i++) {
        own = node[i]
        sub(/[.].*/, "", own)
        if (own == host) return 0
    }
    if (host == "localhost") return 0
    return known["elsewhere"] = 1
}
# Whether Slurm says what became of a node that is none of the job's: it was one of an earlier attempt.
function another_attempt(s, host, i) {
    if (!node_count) return 0
    if (match(s, /[*][*][*] (JOB|STEP) [^ ]+ ON [^ ]+ CANCELLED/)) {
        host = substr(s, RSTART, RLENGTH - 10)
        sub(/.* ON /, "", host)
    } else if (match(s, /srun: error: Node failure on [A-Za-z0-9.-]+$/)) {
        host = substr(s, RSTART + 29)
    } else return 0
    sub(/[.].*/, "", host)
    for (i = 1; i <= node_count; i++) if (index(node[i] ".", host ".") == 1) return 0
    return 1
}
function rank_of(s, file, found) {
    if (match(s, /\[(rank)? ?[0-9]+\]:/) || match(s, /\[[Rr]ank ?[0-9]+\]/) || match(s, /task [0-9]+:/) || match(s, /^ *[0-9]+: /)) {
        found = substr(s, RSTART, RLENGTH)
        gsub(/[^0-9]/, "", found)
    } else if (match(file, /(^|\/)ranks?[-\/][0-9]+/)) {
        found = substr(file, RSTART, RLENGTH)
        gsub(/[^0-9]/, "", found)
    }
    return found
}
# srun: error: NODE: tasks 0,8-11: … What a rank itself recorded counts before that: each role has a rank 0.
function remember(s, part, count, i, parts, ends) {
    split(s, part, ": ")
    sub(/^tasks? /, "", part[4])
    count = split(part[4], parts, ",")
    for (i = 1; i <= count; i++) {
        split(parts[i] "-" parts[i], ends, "-")
        for (rank = ends[1] + 0; rank <= ends[2] + 0 && rank < 100000; rank++) if (!(rank in recorded)) on[rank] = part[3]
    }
}
# Of the lines of one rule the one of the rank that failed first counts, else the first in the order of files.
function weigh(rule, file, offset, s, rank, better) {
    rank = rank_of(s, file)
    if (!(rule in best)) better = 1
    else if (first_rank != "" && (rank == first_rank) != (best_rank[rule] == first_rank)) better = rank == first_rank
    else if (file == best_file[rule]) better = offset + 0 < best_offset[rule] + 0
    else better = (file in order) && order[file] < order[best_file[rule]]
    if (better) {
        best[rule] = s
        best_file[rule] = file
        best_offset[rule] = offset
        best_rank[rule] = rank
    }
    if (blame[rule] != "no") suspect[rule, ++suspects[rule]] = file SUBSEP s
}
# A traceback that Python only tells of ("Exception ignored in …") is nothing: its last line is passed over.
function take(file, offset, s, rule) {
    spoken = 0
    # What counts only beside another line takes no line away, and is nothing where the line is known to be harmless first.
    known_as = log_rule(s)
    for (rule = 0; (class[known_as] != "harmless" || strength[known_as] != "first") && (rule = log_with_rule(s, rule));) {
        if (needs[rule] == "elsewhere" && !elsewhere(s)) continue
        weigh(rule, file, offset, s)
        tell(rule, file, offset, s)
    }
    # In a text that only tells of faults, such as a model's samples, the command's own errors alone count.
    if ((rule = quote_rule(s))) quoted_until = strength[rule] == "covers" ? offset + reach : -1
    if (another_attempt(s)) return
    rule = known_as
    if (!rule || offset <= quoted_until && class[rule] != "user" && class[rule] != "harmless") return
    if (s ~ /^srun: error: [^ :]+: tasks? [0-9,-]+: /) remember(s)
    if (strength[rule] == "covers") { covered_file = file; covered_until = offset + reach; return }
    if (class[rule] == "harmless" && strength[rule] != "place") return
    if (strength[rule] == "general" && file == covered_file && offset <= covered_until) {
        if (name[rule] != "traceback") covered_file = ""
        return
    }
    if (class[rule] != "harmless") weigh(rule, file, offset, s)
    tell(rule, file, offset, s)
    if (class[rule] == "user") spoken = last_rule(s)
}
# The error that a log ends with: what follows without a gap, but for an empty line, are echoes and words of
# Slurm and the launcher; the program itself did nothing more. After the end of the time nothing is a cause.
function follow(file, offset, s, bytes) {
    if (!known_as || class[known_as] == "harmless" && strength[known_as] !~ /^(place|follows)$/) return
    if (file != run_file || offset > run_end + 1 || offset < run_end) words = 0
    run_file = file
    run_end = offset + bytes + 1
    if (class[known_as] == "time") over = file
    if (spoken && over != file) { words = spoken; words_offset = offset; words_text = s }
    if (!words || !(file in size) || run_end + 1 < size[file]) return
    weigh(words, file, words_offset, words_text)
    tell(words, file, words_offset, words_text)
    words = 0
}
function heard(file, offset, s, bytes) {
    take(file, offset, s)
    follow(file, offset, s, bytes)
}
function tell(rule, file, offset, s) {
    if (told[rule] < 64 && told[rule, file] < (strength[rule] == "place" ? 64 : 4)) {
        told[rule]++
        told[rule, file]++
        print "hit\t" name[rule] "\t" file "\t" offset "\t" substr(s, 1, 500)
    }
}
# A line that comes again and again, but for its numbers, must not use up what the others need.
function look(file, offset, text, count, i, parts, shape) {
    if (looked[file, base] >= 20000 || ++passed[file, base] > 4000000) return
    shape = substr(text, 1, 80)
    gsub(/[0-9]+/, "", shape)
    if (++shapes[file, base, shape] > 2000) return
    looked[file, base]++
    if (!index(text, "\r")) { heard(file, offset, clean(substr(text, 1, 8000)), length(text)); return }
    count = split(text, parts, "\r")
    for (i = 1; i <= count; i++) {
        if (i > count - 2000 && parts[i] != "") heard(file, offset, clean(substr(parts[i], 1, 8000)), length(parts[i]))
        if (bytewise) offset += length(parts[i]) + 1
    }
}
BEGIN {
    reach = bytewise ? 6000 : 60
    count = split(ENVIRON["tl_facts"], line, "\n")
    for (i = 1; i <= count; i++) {
        kind = line[i]
        sub(/ .*/, "", kind)
        rest = substr(line[i], length(kind) + 2)
        if (kind == "nodes") node_count = split(rest, node, " ")
        else if (kind == "rank") first_rank = rest
        else if (kind == "at") { split(rest, pair, " "); place[pair[1]] = pair[2] }
        else if (kind == "on") { split(rest, pair, " "); on[pair[1]] = recorded[pair[1]] = pair[2] }
        else fact[++fact_count] = line[i]
    }
    count = split(ENVIRON["tl_files"], line, "\n")
    for (i = 1; i <= count; i++) {
        split(line[i], part, " ")
        if (part[4] == "") continue
        order[part[4]] = i
        if (bytewise) size[part[4]] = part[2]
        print "file\t" part[4] "\t" part[2]
        if (part[1] == "part") print "partial\t" part[4]
    }
}
{
    if (substr($0, 1, length(mark)) == mark) {
        if (substr($0, length(mark) + 1, 1) == "#") { here = substr($0, length(mark) + 2) + 0; next }
        split(substr($0, length(mark) + 1), head, "\001")
        file = head[1]
        base = bytewise ? head[2] : 0
        origin = bytewise ? here + length($0) + 1 : here
        quoted_until = -1
        next
    }
    look(file, here - origin + base, $0)
}
# The nodes that a rule's lines are about: what all of several nodes have is no fault of one of them.
function accuse(rule, i, part, who, seen, count) {
    guilty = ""
    for (i = 1; i <= suspects[rule]; i++) {
        split(suspect[rule, i], part, SUBSEP)
        who = node_of(part[2], part[1], rank_of(part[2], part[1]))
        if (who == "" || (who in seen)) continue
        seen[who] = 1
        if (++count == 1) guilty = who
    }
    # A line that names nobody is most likely of the rank that failed first.
    if (!count && first_rank != "" && (first_rank in on)) { guilty = on[first_rank]; count = 1 }
    shared = node_count > 1 && count >= node_count
    if (node_count > 1 ? count >= node_count : blame[rule] == "alone") guilty = ""
    if (count > 1 && blame[rule] == "alone") guilty = ""
}
END {
    for (i = 1; i <= fact_count; i++) {
        kind = substr(fact[i], 1, index(fact[i], " ") - 1)
        rest = substr(fact[i], length(kind) + 2)
        rule = 0
        if (kind == "slurm") {
            while ((rule = slurm_with_rule(rest, rule))) weigh(rule, "", "", rest)
            rule = slurm_rule(rest)
        }
        if (kind == "end") rule = end_rule(rest)
        if (rule && class[rule] != "harmless") weigh(rule, "", "", rest)
    }
    for (rule in best) known[name[rule]] = 1
    for (rule = 1; rule <= last; rule++) if ((rule in best) && (needs[rule] == "" || (needs[rule] in known))) break
    if (rule > last) { print "verdict\tnone\tno\tno\t-\t-\t" shown(first_rank) "\t-\t-\t-"; exit }
    if (blame[rule] != "no") accuse(rule)
    if (guilty == "") where = node_of(best[rule], best_file[rule], best_rank[rule])
    else where = guilty
    if (where == "" && first_rank != "" && (first_rank in on)) where = on[first_rank]
    alone = blame[rule] == "alone" && guilty != ""
    rank = best_rank[rule] == "" ? first_rank : best_rank[rule]
    own = blame[rule] == "uneven" && node_count > 1 && guilty == ""
    kind = alone ? "node" : own ? "user" : class[rule] == "node" && shared ? "infrastructure" : class[rule]
    again = alone ? "yes" : own ? "no" : retry[rule]
    print "verdict\t" kind "\t" again "\t" (guilty != "" ? "yes" : "no") \
        "\t" name[rule] "\t" shown(where) "\t" \
        shown(rank) "\t" shown(best_file[rule]) "\t" shown(best_offset[rule]) "\t" shown(substr(best[rule], 1, 500))
}
AWK
}

# --- Where to look ---------------------------------------------------------------------------------------------

# files NAME…: the files, one a line. A name that xargs would not take as it is was not made by Towline.
files() {
    for name; do
        if [ -d "$name" ]; then
            find "$name" -type f \( -name '*.err' -o -name '*.out' -o -name '*.log' \) | sed 's|^[.]/||' | sort
        elif [ -f "$name" ]; then
            printf '%s\n' "$name"
        fi
    done | awk '!seen[$0]++' | grep '^[A-Za-z0-9_./@%+,=-]*$'
}

# Splits the files into those that are read whole and those that are too long for their share of the bytes; short ones
# leave what they do not need to the long ones.
share() {
    xargs wc -c /dev/null 2>/dev/null | awk -v left="$bytes" '
        $1 > 0 && $2 != "total" { size[++count] = $1; name[count] = $2 }
        END {
            long = count
            do {
                each = long ? int(left / long) : 0
                taken = 0
                for (i = 1; i <= count; i++)
                    if (!(i in whole) && size[i] <= each) { whole[i] = 1; left -= size[i]; long--; taken = 1 }
            } while (taken && long)
            for (i = 1; i <= count; i++) print (i in whole ? "whole" : "part"), size[i], each, name[i]
        }'
}

text='' place=-n bytewise=''
if printf 'a\n' | grep -a a >/dev/null 2>&1; then text=-a; fi
if printf 'a\n' | grep -b a >/dev/null 2>&1; then place=-b bytewise=1; fi
deadline=$(($(date +%s) + seconds))

# mark NAME BASE: what follows is that file's, from that byte on. A log that writes such marks fools only itself.
mark() {
    printf '\n%s%s\001%d\n' "$tl_mark" "$1" "$2"
}

# in_time: looked at now and then.
in_time() {
    looked=$((looked + 1))
    [ $((looked % 8)) -ne 0 ] || [ "$(date +%s)" -lt "$deadline" ]
}

# stream: the files in one stream. What ended a job stands mostly at the end of a log, so the ends of long ones come first.
stream() {
    looked=0
    printf '%s\n' "$tl_files" | while read -r how size each name && in_time; do
        case $how in
        whole)
            mark "$name" 0
            cat "$name"
            ;;
        part)
            mark "$name" $((size - each + each / 4))
            tail -c $((each - each / 4)) "$name"
            ;;
        esac
    done
    printf '%s\n' "$tl_files" | grep '^part ' | while read -r _ _ each name && in_time; do
        mark "$name" 0
        head -c $((each / 4)) "$name"
    done
}

# The lines that any rule knows, each below its offset. A disk that hangs must not keep the judge waiting: when the time is
# over, what was found by then is gone through.
search() {
    found_texts | sed "s/^\([0-9]*\):/$tl_mark#\1\\
/" | grep ${text:+"$text"} -E -e "$wanted"
}

found_texts() {
    if timeout 1 true 2>/dev/null; then
        timeout "$seconds" grep ${text:+"$text"} "$place" -F -e "$known"
    else
        grep ${text:+"$text"} "$place" -F -e "$known"
    fi
}

tl_mark=$(printf '\001%s\001' "$$")
known=$(
    printf '%s\n' "$tl_mark"
    texts
)
wanted=$(
    patterns
    printf '^%s' "$tl_mark"
)
program=$(judge)
cd "$directory" || exit
tl_files=$(files "$@" | share)
export tl_files
stream 2>/dev/null | search | awk -v bytewise="$bytewise" -v mark="$tl_mark" "$program"
exit 0
