# Print what a job's directory says of it, for a client that has not seen the job before.
#
# Arguments: the job directory.
# Output: a line "made <seconds since 1970>", for each attempt a line "attempt <number> <sbatch's answer, or nothing>",
# an empty line, then job.json.
# Exit codes: 0; 44 there is no such directory of the user's own.

[ -d "$1" ] && [ ! -h "$1" ] && [ -O "$1" ] && cd "$1" && [ -f job.json ] && [ ! -h job.json ] || exit 44
printf 'made %s\n' "$(stat -c %Y job.json)"
number=1
while [ -d "attempts/$number" ]; do
    answer=
    for file in claim submit; do
        path=attempts/$number/$file
        if [ -f "$path" ] && [ ! -h "$path" ]; then answer=$(head -c 100 "$path" | tr -cd 'A-Za-z0-9_.;-'); fi
    done
    printf 'attempt %s %s\n' "$number" "$answer"
    number=$((number + 1))
done
echo
head -c 33554432 job.json
