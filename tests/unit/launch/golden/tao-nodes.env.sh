export MASTER_ADDR="${TOWLINE_MASTER_ADDR:-}"
export MASTER_PORT="${TOWLINE_MASTER_PORT:-}"
export NODE_RANK="${SLURM_NODEID:-0}"
export NNODES='2'
export NPROC_PER_NODE='8'
export NUM_GPU_PER_NODE='8'
export WORLD_SIZE='2'
export SLURM_JOB_NAME=bash
unset SLURM_NTASKS SLURM_NNODES SLURM_PROCID SLURM_LOCALID SLURM_NTASKS_PER_NODE RANK LOCAL_RANK GROUP_RANK
export TAO_JOB_ID='m3k9w2x4p'
TAO_RESULTS_ROOT=$(cd '/lustre/alice/towline/results' 2>/dev/null && pwd -P) || TAO_RESULTS_ROOT='/lustre/alice/towline/results'
export TAO_RESULTS_ROOT TAO_API_RESULTS_DIR="$TAO_RESULTS_ROOT"
export PYTHONNOUSERSITE=1 PYTHONDONTWRITEBYTECODE=1
[ -n "${HF_HOME:-}" ] || HF_HOME='/lustre/alice/towline/.cache/huggingface'
[ -n "${NCCL_DEBUG:-}" ] || NCCL_DEBUG='INFO'
[ -n "${LOGLEVEL:-}" ] || LOGLEVEL='INFO'
export HF_HOME NCCL_DEBUG LOGLEVEL
export TOWLINE_JOB_ID='m3k9w2x4p'
export TOWLINE_JOB_NAME='train'
export TOWLINE_RESULTS_DIR='/lustre/alice/towline/jobs/m3k9w2x4p/results'
export PYTHONUNBUFFERED='1'
if [ -n "${COSMOS_NODE_ROLE:-}" ]; then
    [ -n "${COSMOS_CACHE:-}" ] || COSMOS_CACHE='/lustre/alice/towline/.cache/cosmos'
    [ -n "${CUDA_OVERRIDE_VERSION:-}" ] || CUDA_OVERRIDE_VERSION='12.8'
    export COSMOS_CACHE CUDA_OVERRIDE_VERSION
fi
if [ -n "${CUDA_OVERRIDE_VERSION:-}" ]; then
    tl_cuda=/usr/local/cuda-$CUDA_OVERRIDE_VERSION
    export CUDA_HOME="$tl_cuda" CUDA_PATH="$tl_cuda"
    export LD_LIBRARY_PATH="$tl_cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export LIBRARY_PATH="$tl_cuda/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}"
    export CPATH="$tl_cuda/include${CPATH:+:$CPATH}"
    unset tl_cuda
fi
