tl_step_tasks=2
tl_role_first=1
tl_role_nodes=2
tl_role_port=
tl_role_patience=600
tl_role_service=
tl_role_linger=30
set -- \
    'srun' \
    "--nodelist=$tl_role_hosts" \
    '--overlap' \
    '--nodes=2' \
    '--ntasks=2' \
    '--ntasks-per-node=1' \
    '--cpus-per-task=16' \
    '--kill-on-bad-exit=1' \
    '--wait=0' \
    '--container-image=/lustre/images/python.sqsh' \
    '--container-mounts=/lustre/alice/towline/jobs/m3k9w2x4p:/lustre/alice/towline/jobs/m3k9w2x4p,/lustre/alice/towline/jobs/m3k9w2x4p/script:/.towline' \
    '--no-container-mount-home' \
    '/bin/sh' \
    '/lustre/alice/towline/jobs/m3k9w2x4p/script/prelude' \
    'container'
