#!/bin/sh
# data-find.sh PLACE PYTHON: what is staged of each line `STEM URI` of ./inputs, and what its source has now. ./stager is the
# program that asks, ./variables and ./secrets (sh text) are its environment; PYTHON is the one to ask with; empty for the host's own.
# shellcheck source=src/towline/slurm/scripts/common.sh
. ./common.sh
# shellcheck source=src/towline/slurm/scripts/space.sh
. ./space.sh
# shellcheck source=src/towline/slurm/scripts/python.sh
. ./python.sh

# staged NUMBER STEM: the directories that are whole, each with its owner and notes.
staged() {
    for tl_note in "$tl_within/$2"+*/note; do
        if [ ! -f "$tl_note" ] || [ -h "$tl_note" ] || [ -h "${tl_note%/note}" ]; then continue; fi
        tl_name=${tl_note%/note}
        tl_name=${tl_name##*/}
        printf '>have %s %s %s\n' "$1" "$tl_name" "$(stat -c '%u %Y' "$tl_note")"
        sed "s/^/>note $tl_name /" "$tl_note"
    done
}

# now: what the sources say.
now() {
    # shellcheck source=/dev/null
    . ./variables
    # shellcheck source=/dev/null
    [ ! -f ./secrets ] || . ./secrets
    cut -d ' ' -f 2- ./inputs | "$tl_python" ./stager ask
}

tl_within=$1
printf '@fact inputs\n>uid %s\n' "$(id -u)"
tl_count=0
while read -r tl_stem _; do
    staged "$tl_count" "$tl_stem"
    tl_count=$((tl_count + 1))
done <./inputs
if find_python "$2"; then
    (now) 2>./ask.err | sed 's/^/>now /'
    tail -n 3 ./ask.err | sed 's/^/>said /'
else
    printf '>no-python %s\n' "$2"
fi
printf '@query 0 space - -\n'
space "$tl_within" | sed 's/^/>/'
echo @end
