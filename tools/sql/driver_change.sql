-- Kernels that got slower by a driver change: the same kernel with the same grid on the same GPU under two drivers.
-- Each driver against the one before it. slower_pct: by the median.
with by_driver as (
  select p.gpu, p.driver_version, g.name, g.blocks, g.threads_per_block,
         count(*) as launches, median(g.duration_ns) / 1e3 as median_us
  from gpu_work g join processes p on g.process = p.process
  where g.kind = 'kernel' and p.driver_version is not null
  group by p.gpu, p.driver_version, g.name, g.blocks, g.threads_per_block
), beside as (
  select gpu, name, blocks, threads_per_block, driver_version, launches, median_us,
         lag(driver_version) over (partition by gpu, name, blocks, threads_per_block order by driver_version) as old_driver,
         lag(median_us) over (partition by gpu, name, blocks, threads_per_block order by driver_version) as old_median_us
  from by_driver
)
select gpu, name, blocks, threads_per_block, old_driver, driver_version, launches, old_median_us, median_us,
       100 * (median_us / old_median_us - 1) as slower_pct
from beside
where median_us > old_median_us and old_median_us > 0
order by slower_pct desc, gpu nulls last, name, blocks nulls last, threads_per_block nulls last, driver_version
