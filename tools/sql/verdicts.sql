-- What would help most over all jobs: the report's first causes, by how many jobs have them and what they cost.
-- Of several exports of an attempt that with most ranks counts.
with newest as (
  select *, rank() over (partition by job, run, attempt order by ranks desc, part) as place
  from verdicts
)
select cause,
       count(*) as jobs,
       avg(saves_pct) as mean_saves_pct,
       max(saves_pct) as most_saves_pct,
       sum(case when position = 1 then 1 else 0 end) as times_first
from newest
where place = 1
group by cause
order by jobs desc, cause
