#!/bin/sh
# What a login host says that nobody asked for: digits, and lines that look like Slurm's answers.
cat <<'END'
***********************************************************************
*  Maintenance on 2026-12-24, 17 of 1024 nodes are down               *
***********************************************************************
Submitted batch job 4242
4242
4242;lab
4242|COMPLETED|0:0|alice
JOBID|STATE|REASON
quota: 99% of 10737418240 bytes used
END
cat >&2 <<'END'
sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified
slurm_load_jobs error: Unable to contact slurm controller (connect failure)
ssh: connect to host login1 port 22: Connection refused
Permission denied (publickey).
exit 255
END
