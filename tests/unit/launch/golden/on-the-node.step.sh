tl_step_tasks=8
tl_step_port=
tl_step_environment=chosen
tl_step_logs=ranks
set -- \
    'srun' \
    '--nodes=2' \
    '--ntasks=8' \
    '--ntasks-per-node=4' \
    '--output='"$tl_log_dir"'/ranks/%t-%N.out' \
    '--error='"$tl_log_dir"'/ranks/%t-%N.err' \
    '--open-mode=append' \
    '--kill-on-bad-exit=1' \
    '--wait=0' \
    '--chdir=/lustre/a b' \
    '/bin/sh' \
    '/lustre/alice/towline/jobs/m3k9w2x4p/script/prelude' \
    'node'
