#!/bin/sh
cd /data &&
torchrun --nnodes=$NNODES --nproc-per-node=$NPROC_PER_NODE train.py
