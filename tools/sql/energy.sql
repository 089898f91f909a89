-- GPU-hours and joules by user. GPU-hours: GPUs with recorded work, for as long as the step log of the process goes.
-- joules: NVML's power in the recorded windows alone. watts: their mean for each GPU; null without such samples.
with run as (
  select user_name, host, pid, run_begin_ns,
         max(gpus) as gpus,
         max(run_end_ns) - min(run_begin_ns) as run_ns,
         sum(energy_j) as energy_j,
         sum(energy_time_ns) as energy_time_ns
  from processes
  where not data_worker
  group by user_name, host, pid, run_begin_ns
)
select user_name,
       count(*) as processes,
       sum(gpus * run_ns) / 3.6e12 as gpu_hours,
       sum(energy_j) as joules,
       sum(energy_j) / (sum(energy_time_ns) / 1e9) as watts
from run
group by user_name
order by gpu_hours desc nulls last, user_name nulls last
