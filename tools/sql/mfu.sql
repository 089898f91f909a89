-- Model FLOP utilisation by program and GPU: the report's figure, mean over jobs. Of jobs with recorded shapes alone.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
with newest as (
  select *, row_number() over (partition by job, coalesce(run, part), attempt order by ranks desc, part) as place
  from reports
)
select command, gpu,
       count(*) as jobs,
       avg(mfu_pct) as mfu_pct,
       avg(tflops) as tflops,
       avg(counted_time_pct) as counted_time_pct
from newest
where place = 1 and tflops is not null
group by command, gpu
order by mfu_pct desc nulls last, command nulls last, gpu nulls last
