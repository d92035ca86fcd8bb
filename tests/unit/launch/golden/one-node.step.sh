tl_step_tasks=1
tl_step_port=
tl_step_environment=chosen
set -- \
    'srun' \
    '--nodes=1' \
    '--ntasks=1' \
    '--ntasks-per-node=1' \
    '--kill-on-bad-exit=1' \
    '--wait=0' \
    '--container-image=/lustre/images/python.sqsh' \
    '--container-mounts=/lustre/alice/towline/jobs/m3k9w2x4p:/lustre/alice/towline/jobs/m3k9w2x4p,/lustre/alice/towline/jobs/m3k9w2x4p/script:/.towline' \
    '--no-container-mount-home' \
    '/bin/sh' \
    '/lustre/alice/towline/jobs/m3k9w2x4p/script/prelude' \
    'container'
