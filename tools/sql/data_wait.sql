-- Which jobs wait for data: GPU idle time in which the thread that runs the steps waits for its data loader.
-- unknown_steps: those of which that is not known, since GPUPROF_BUDGET left out what tells it; they are not in the sums.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
select s.job, coalesce(s.run, s.part) as run, s.attempt,
       count(s.data_loading_ns) as steps,
       sum(s.data_loading_ns) / 1e9 as waited_s,
       100 * sum(s.data_loading_ns) / cast(sum(case when s.data_loading_ns is not null then s.duration_ns end) as double) as share_pct,
       max(p.user_name) as user_name,
       max(p.command) as command,
       count(*) - count(s.data_loading_ns) as unknown_steps
from steps s join processes p on s.process = p.process
where s.compute_ns is not null and s.duration_ns > 0
group by s.job, coalesce(s.run, s.part), s.attempt
order by share_pct desc nulls last, job nulls last, run nulls last, attempt nulls last
