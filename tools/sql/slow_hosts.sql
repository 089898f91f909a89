-- The slowest ranks and hosts of the last 30 days that there are.
-- A rank's own time in a step is what is left without communication, in which it waits for others. slowdown: own time
-- against that of the job's median rank in the same step, mean over steps. lost_s: what it took longer, summed up.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
with own as (
  select s.job, coalesce(s.run, s.part) as run, s.attempt, s.step, s.rank, p.host, s.duration_ns - s.communication_ns as own_ns
  from steps s join processes p on s.process = p.process
  where s.communication_ns is not null
    and p.window_end_ns > (select max(window_end_ns) from processes) - 30 * cast(86400000000000 as bigint)
), compared as (
  select host, rank, own_ns, median(own_ns) over (partition by job, run, attempt, step) as usual_ns
  from own
)
select host, rank, count(*) as steps,
       avg(own_ns / cast(usual_ns as double)) as slowdown,
       sum(own_ns - usual_ns) / 1e9 as lost_s
from compared
where usual_ns > 0
group by host, rank
order by slowdown desc, host nulls last, rank nulls last
