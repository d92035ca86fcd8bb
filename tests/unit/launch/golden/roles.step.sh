tl_step_port=29500
tl_step_environment=chosen
tl_step_roles='controller policy'
