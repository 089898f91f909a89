-- Who comes last to collectives, by rank: how often, and how long the other ranks of the group wait in them.
-- Messages are counted apart for each pair of ranks and direction. GPUs of one process wait side by side: their mean counts.
-- Traces that name no run, as torch.profiler's, are a run for each export: its part.
with named as (
  select job, coalesce(run, part) as run, attempt, process, rank, communicator, sequence, wait_ns,
         case operation when 'ncclSend' then group_rank when 'ncclRecv' then peer end as sender,
         case operation when 'ncclSend' then peer when 'ncclRecv' then group_rank end as receiver
  from collectives
  where wait_ns is not null and communicator is not null and sequence is not null
), of_ranks as (
  select job, run, attempt, process, rank, communicator, sequence, sender, receiver,
         min(wait_ns) as shortest_ns, avg(wait_ns) as wait_ns
  from named
  group by job, run, attempt, process, rank, communicator, sequence, sender, receiver
), joint as (
  select job, run, attempt, rank, wait_ns, shortest_ns,
         min(shortest_ns) over (partition by job, run, attempt, communicator, sequence, sender, receiver) as least_ns,
         sum(wait_ns) over (partition by job, run, attempt, communicator, sequence, sender, receiver) as waited_ns
  from of_ranks
)
select job, run, attempt, rank,
       count(*) as collectives,
       sum(case when shortest_ns = least_ns then 1 else 0 end) as times_last,
       sum(case when shortest_ns = least_ns then waited_ns - wait_ns else 0 end) / 1e9 as others_waited_s,
       sum(wait_ns) / 1e9 as waited_s
from joint
group by job, run, attempt, rank
order by others_waited_s desc, job nulls last, run nulls last, attempt nulls last, rank nulls last
