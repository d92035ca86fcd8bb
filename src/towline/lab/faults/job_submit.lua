-- What sites want of jobs (job_submit.lua(5)), each wish while a file of its name is in /etc/slurm/job_submit.d.
local function is_on(wish)
    local file = io.open("/etc/slurm/job_submit.d/" .. wish)
    return file and file:close()
end

local function has_untyped_gpus(job)
    for _, asked in ipairs({job.tres_per_node or "", job.tres_per_job or "", job.tres_per_task or ""}) do
        for gpus in string.gmatch(asked, "gpu[^,]*") do
            if not string.find(gpus, "gpu:%a") then
                return true
            end
        end
    end
    return false
end

function slurm_job_submit(job, partitions, uid)
    if is_on("typed-gpus-only") and has_untyped_gpus(job) then
        slurm.log_user("GPUs are asked for with their type here, e.g. --gres=gpu:h100:1")
        return slurm.ERROR
    end
    if is_on("account-needed") and not job.account then
        slurm.log_user("Jobs have to name an account here (--account)")
        return slurm.ERROR
    end
    return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end

return slurm.SUCCESS
