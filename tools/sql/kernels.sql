-- Kernels of the steps by name: how often, how long in all, and the median and 95th percentile of one.
-- A part is one export; the figures are those of `kernels` in its report.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
select job, coalesce(run, part) as run, attempt, name,
       count(*) as launches,
       sum(duration_ns) / 1e3 as total_us,
       percentile_cont(0.5) within group (order by duration_ns) / 1e3 as median_us,
       percentile_cont(0.95) within group (order by duration_ns) / 1e3 as p95_us
from gpu_work
where in_steps and kind = 'kernel'
group by job, coalesce(run, part), attempt, name
order by total_us desc, job nulls last, run nulls last, attempt nulls last, name
