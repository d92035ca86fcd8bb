#!/bin/sh
# train-k3q9p0abc-a1
# Towline job k3q9p0abc, attempt 2
# sh -c 'first #SBATCH --account=evil second'
#
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8,nvme:1
#SBATCH --wait-all-nodes=1
#SBATCH --mem=1024M
#SBATCH --exclusive
#SBATCH --licenses=matlab:2,fluent@db:1
#SBATCH --time=00:01:00
#SBATCH --job-name=train-k3q9p0abc-a1
#SBATCH --account=research
#SBATCH --partition=batch,low
#SBATCH --qos=high
#SBATCH --reservation=friday
#SBATCH --constraint=[rack1|rack2]&nvme
#SBATCH --nodelist=node[1-2]
#SBATCH --exclude=node3,node4
#SBATCH --comment="{\"OccupiedIdleGPUsJobReaper\":{\"exemptIdleTimeMins\":\"60\"}} # it's \\o/"
#SBATCH --begin=2026-03-01T08:00
#SBATCH --deadline=now+7days
#SBATCH --signal=USR1@300
#SBATCH --chdir=/lustre/alice/towline/jobs/k3q9p0abc
#SBATCH --output=/lustre/alice/towline/jobs/k3q9p0abc/attempts/2/main.out
#SBATCH --error=/lustre/alice/towline/jobs/k3q9p0abc/attempts/2/main.err
#SBATCH --open-mode=append
#SBATCH --mail-user=alice@example.org
#SBATCH --mail-type=END,FAIL
#SBATCH --requeue
#SBATCH --export=NONE
#SBATCH --switches=2@1:00:00
#SBATCH --hold
#SBATCH --nice=-5

export TOWLINE_JOB_ID=k3q9p0abc
export TOWLINE_ATTEMPT="${1:-2}"
export TOWLINE_JOB_DIR=/lustre/alice/towline/jobs/k3q9p0abc

exec /bin/sh "$TOWLINE_JOB_DIR/script/supervisor"
