#!/bin/sh
# train-k3q9p0abc-a1
# Towline job k3q9p0abc, attempt 1
#
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --mem=0
#SBATCH --exclusive
#SBATCH --job-name=train-k3q9p0abc-a1
#SBATCH --chdir=/lustre/alice/towline/jobs/k3q9p0abc
#SBATCH --output=/lustre/alice/towline/jobs/k3q9p0abc/attempts/1/main.out
#SBATCH --error=/lustre/alice/towline/jobs/k3q9p0abc/attempts/1/main.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=NONE

export TOWLINE_JOB_ID=k3q9p0abc
export TOWLINE_ATTEMPT="${1:-1}"
export TOWLINE_JOB_DIR=/lustre/alice/towline/jobs/k3q9p0abc

exec /bin/sh "$TOWLINE_JOB_DIR/script/supervisor"
