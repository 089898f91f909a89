-- Regressions week over week: the median step of each program on each GPU, against the week before in which it ran.
-- A week begins on a Thursday, as 1970 did. Of several exports of an attempt that with most ranks counts.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
with newest as (
  select *, row_number() over (partition by job, coalesce(run, part), attempt order by ranks desc, part) as place
  from reports
), by_week as (
  select command, gpu, ranks, cast(floor(begin_ns / 6048e11) as int) as week,
         count(*) as jobs, median(step_median_us) as step_us
  from newest
  where place = 1 and step_median_us is not null and not whole_windows
  group by command, gpu, ranks, cast(floor(begin_ns / 6048e11) as int)
), beside as (
  select command, gpu, ranks, week, jobs, step_us,
         lag(week) over (partition by command, gpu, ranks order by week) as old_week,
         lag(step_us) over (partition by command, gpu, ranks order by week) as old_step_us
  from by_week
)
select command, gpu, ranks, date '1970-01-01' + cast(7 * week as int) as week_of, jobs,
       old_step_us, step_us, 100 * (step_us / old_step_us - 1) as slower_pct
from beside
where old_step_us > 0
order by slower_pct desc, command nulls last, gpu nulls last, ranks, week
