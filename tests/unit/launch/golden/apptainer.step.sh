tl_step_tasks=2
tl_step_port=
tl_step_environment=chosen
set -- \
    'srun' \
    '--nodes=2' \
    '--ntasks=2' \
    '--ntasks-per-node=1' \
    '--kill-on-bad-exit=1' \
    '--wait=0' \
    'apptainer' \
    'exec' \
    '--nv' \
    '--no-home' \
    '--bind=/lustre/my data:/data:ro' \
    '--bind=/lustre/alice/towline/jobs/m3k9w2x4p:/lustre/alice/towline/jobs/m3k9w2x4p:rw' \
    '--bind=/lustre/alice/towline/jobs/m3k9w2x4p/script:/.towline:rw' \
    '--pwd=/work' \
    'docker://nvcr.io/nvidia/pytorch:24.07-py3' \
    '/bin/sh' \
    '/lustre/alice/towline/jobs/m3k9w2x4p/script/prelude' \
    'container'
