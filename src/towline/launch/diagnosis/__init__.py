r"""Why an attempt ended: rules as data, and a search of its logs that runs where the logs are.

The rules stand in `rules/*.toml`, read in the order of the files' names. They are ordered by cause: when several rules
know a line each, the first rule's line is the cause and the others are its echoes. `python -m harness.renew` compiles
them into `rules.tsv`, one rule a line, with tabs between the columns:

    NAME CLASS WHERE RETRY BLAME STRENGTH PATTERN MEANS ADVICE

and below them a line with texts of which each line of a log has one that any rule knows: what is searched for first.
CLASS is one of `towline.models.diagnosis.FaultClass`, or `harmless` for lines that look like a fault and are none.
WHERE is `log` (the lines of log files), `last` (a log's last one), `quote` (where a text that only tells of faults, as
a model's samples do, begins or ends), `slurm` or `end` (facts, see below). RETRY is `yes`, `no` or `resume`; BLAME is
`yes`, `no`, `alone` for what is a node's fault only if others of the job do not have it, or `uneven` for what is the
job's own fault (class `user`, no retry) if of several nodes all have it, or nobody says which.
STRENGTH says which of several rules knows a line, see `rules.Strength`. PATTERN is an extended regular expression
(regex(7)) that Python reads in the same way.

`search.sh` takes compiled rules, facts and log files; its head says how it is called and what it answers. It judges by
itself, so that the supervisor on the node and the client come to the same end: both files go into every job as
`script/rules` (without the last two columns) and `script/search.sh`. In a supervisor:

    {
        printf 'nodes %s\n' "$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\n' ' ')"
        printf 'rank %s\n' "$job_rank"
        printf 'end verdict=%s\nend reason=%s\nend code=%s\n' "$verdict" "$reason" "$job_code"
    } >"$own_dir/facts"
    script=$TOWLINE_JOB_DIR/script
    # CLASS RETRY BLAME RULE NODE RANK FILE OFFSET LINE, tabs between
    /bin/sh "$script/search.sh" "$script/rules" "$own_dir/facts" 30 268435456 "$attempt_dir" |
        sed -n 's/^verdict.//p' >"$own_dir/verdict"

Facts are lines `nodes NAME…`, `rank N`, `at FILE NODE`, `on RANK NODE`, `slurm KEY=VALUE` and `end KEY=VALUE`. Keys of
`slurm`: `state` and `reason` (Slurm's words), `exit` (`code:signal`), `step` (`ID STATE CODE:SIGNAL`, one each).
Keys of `end`: those of the record `end` (`launch.records.EndRecord`): `verdict`, `reason`, `code`, and `bad-nodes`;
and, on the client, `decided`: the class by which the supervisor has decided about another attempt.
"""
