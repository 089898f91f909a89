-- GPU-hours and joules by user. GPU-hours: GPUs with recorded work, for as long as the step log of the process goes.
-- joules: NVML's power in the recorded windows alone. watts: their mean for each GPU; null without such samples.
-- Each window has the step log of its process, and its begin by a clock of its own: within a second it is the same process.
with beside as (
  select *, lag(run_begin_ns) over (partition by job, run, attempt, user_name, host, pid, rank order by run_begin_ns) as before_ns
  from processes
  where not data_worker
), counted as (
  select *, sum(case when run_begin_ns is null or run_begin_ns - before_ns < 1000000000 then 0 else 1 end)
              over (partition by job, run, attempt, user_name, host, pid, rank order by run_begin_ns
                    rows between unbounded preceding and current row) as number
  from beside
), processes_of_runs as (
  select user_name,
         max(gpus) as gpus,
         max(run_end_ns) - min(run_begin_ns) as run_ns,
         sum(energy_j) as energy_j,
         sum(energy_time_ns) as energy_time_ns
  from counted
  group by job, run, attempt, user_name, host, pid, rank, number, run_begin_ns is null
)
select user_name,
       count(*) as processes,
       sum(gpus * run_ns) / 3.6e12 as gpu_hours,
       sum(energy_j) as joules,
       sum(energy_j) / (sum(energy_time_ns) / 1e9) as watts
from processes_of_runs
group by user_name
order by gpu_hours desc nulls last, user_name nulls last
