-- Written by `towline lab fault typed-gpus-only`: what sites do that have several types of GPUs.
function slurm_job_submit(job, partitions, uid)
    for _, asked in ipairs({job.tres_per_node or "", job.tres_per_job or "", job.tres_per_task or ""}) do
        for gpus in string.gmatch(asked, "gpu[^,]*") do
            if not string.find(gpus, "gpu:%a") then
                slurm.log_user("GPUs are asked for with their type here, e.g. --gres=gpu:h100:1")
                return slurm.ERROR
            end
        end
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
