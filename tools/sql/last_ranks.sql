-- Who comes last to collectives, by rank: how often, and how long the other ranks of the group wait in them.
with joint as (
  select job, run, attempt, rank, communicator, sequence, wait_ns,
         min(wait_ns) over (partition by job, run, attempt, communicator, sequence) as least_ns,
         sum(wait_ns) over (partition by job, run, attempt, communicator, sequence) as waited_ns
  from collectives
  where wait_ns is not null and communicator is not null
)
select job, run, attempt, rank,
       count(*) as collectives,
       sum(case when wait_ns = least_ns then 1 else 0 end) as times_last,
       sum(case when wait_ns = least_ns then waited_ns else 0 end) / 1e9 as others_waited_s,
       sum(wait_ns) / 1e9 as waited_s
from joint
group by job, run, attempt, rank
order by others_waited_s desc, job nulls last, run nulls last, attempt nulls last, rank nulls last
