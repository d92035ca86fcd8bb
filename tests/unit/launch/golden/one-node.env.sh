export MASTER_ADDR="${TOWLINE_MASTER_ADDR:-}"
export MASTER_PORT="${TOWLINE_MASTER_PORT:-}"
export NODE_RANK="${SLURM_NODEID:-0}"
export RANK="${SLURM_PROCID:-0}"
export LOCAL_RANK="${SLURM_LOCALID:-0}"
export NNODES='1'
export NPROC_PER_NODE='1'
export NUM_GPU_PER_NODE='0'
export WORLD_SIZE='1'
export TOWLINE_JOB_ID='m3k9w2x4p'
export TOWLINE_JOB_NAME='train'
export TOWLINE_RESULTS_DIR='/lustre/alice/towline/jobs/m3k9w2x4p/results'
export PYTHONUNBUFFERED='1'
export LR='3e-4'
export GREETING='a "b"
$c'
