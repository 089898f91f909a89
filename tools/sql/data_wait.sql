-- Which jobs wait for data: GPU idle time in which the thread that runs the steps waits for its data loader.
select s.job, s.run, s.attempt,
       count(*) as steps,
       sum(s.data_loading_ns) / 1e9 as waited_s,
       100 * sum(s.data_loading_ns) / cast(sum(s.duration_ns) as double) as share_pct,
       max(p.user_name) as user_name,
       max(p.command) as command
from steps s join processes p on s.process = p.process
where s.data_loading_ns is not null and s.duration_ns > 0
group by s.job, s.run, s.attempt
order by share_pct desc, s.job nulls last, s.run nulls last, s.attempt nulls last
