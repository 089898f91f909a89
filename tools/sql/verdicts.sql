-- What would help most over all jobs: the report's first causes, by how many jobs have them and what they cost.
-- Of several exports of an attempt that with most ranks counts. unknown_jobs: those of which it is not known whether they have
-- the cause, since GPUPROF_BUDGET left out what tells it.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
with newest as (
  select *, rank() over (partition by job, coalesce(run, part), attempt order by ranks desc, part) as place
  from verdicts
), told as (
  select unknown_causes, row_number() over (partition by job, coalesce(run, part), attempt order by ranks desc, part) as place
  from reports
), causes as (
  select distinct cause from verdicts
), unknown as (
  select c.cause, count(*) as jobs
  from causes c join told t on t.unknown_causes like concat('%', c.cause, '%')
  where t.place = 1
  group by c.cause
)
select n.cause,
       count(*) as jobs,
       avg(n.saves_pct) as mean_saves_pct,
       max(n.saves_pct) as most_saves_pct,
       sum(case when n.position = 1 then 1 else 0 end) as times_first,
       coalesce(max(u.jobs), 0) as unknown_jobs
from newest n left join unknown u on n.cause = u.cause
where n.place = 1
group by n.cause
order by jobs desc, n.cause
