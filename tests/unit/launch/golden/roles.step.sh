step_port=29500
step_environment=chosen
step_roles='controller policy'
