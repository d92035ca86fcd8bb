step_tasks=8
step_port=
step_environment=chosen
set -- \
    'srun' \
    '--nodes=2' \
    '--ntasks=8' \
    '--ntasks-per-node=4' \
    '--kill-on-bad-exit=1' \
    '--wait=0' \
    '--chdir=/lustre/a b' \
    '/bin/sh' \
    '/lustre/alice/towline/jobs/m3k9w2x4p/script/prelude' \
    'node'
