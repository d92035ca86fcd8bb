#!/bin/sh
# train-k3q9p0abc-a1
# Towline job k3q9p0abc, attempt 1
# learner: python learn.py; actor: python act.py
#
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
#SBATCH --time=01:00:00
#SBATCH --job-name=train-k3q9p0abc-a1
#SBATCH --account=research
#SBATCH --chdir=/lustre/alice/towline/jobs/k3q9p0abc
#SBATCH --output=/lustre/alice/towline/jobs/k3q9p0abc/attempts/1/main.out
#SBATCH --error=/lustre/alice/towline/jobs/k3q9p0abc/attempts/1/main.err
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --export=NONE
#
#SBATCH hetjob
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --wait-all-nodes=1
#SBATCH --time=01:00:00
#SBATCH --account=research
#SBATCH --partition=cpu
#SBATCH --requeue

export TOWLINE_JOB_ID=k3q9p0abc
export TOWLINE_ATTEMPT="${1:-1}"
export TOWLINE_JOB_DIR=/lustre/alice/towline/jobs/k3q9p0abc

exec /bin/sh "$TOWLINE_JOB_DIR/script/supervisor"
