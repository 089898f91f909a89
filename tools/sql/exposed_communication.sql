-- Exposed communication by job and step: time in which ranks communicate and no GPU of theirs computes.
-- seconds: summed over ranks. share_pct: of the step, mean over ranks. hidden_s: communication while compute ran.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
select job, coalesce(run, part) as run, attempt, step,
       count(*) as ranks,
       sum(communication_ns) / 1e9 as exposed_s,
       100 * avg(communication_ns / cast(duration_ns as double)) as share_pct,
       max(communication_ns) / 1e9 as longest_s,
       sum(overlapped_communication_ns) / 1e9 as hidden_s
from steps
where duration_ns > 0 and communication_ns is not null
group by job, coalesce(run, part), attempt, step
order by job nulls last, run nulls last, attempt nulls last, step
