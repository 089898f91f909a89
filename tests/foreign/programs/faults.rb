# SPDX-License-Identifier: Apache-2.0
# What an interpreter does with signals and stacks: stacks of its own, timers, a compaction that protects pages.
require 'open3'
require 'timeout'

p (1..20).map { |i| Thread.new { (1..20000).inject(:+) + i } }.map(&:value).sum
p(10.times.map { |i| Process.wait2(fork { exit!(i) })[1].exitstatus })
output, status = Open3.capture2e('sh', '-c', 'echo x; exit 4')
p output, status.exitstatus
trap('USR1') { puts 'signal' }
Process.kill('USR1', $$)
sleep 0.2
begin
  Timeout.timeout(0.3) { sleep 5 }
rescue Timeout::Error
  puts 'timeout'
end
fiber = Fiber.new do
  5.times { |i| Fiber.yield i }
  :done
end
p(6.times.map { fiber.resume })
def descend(n) = descend(n + 1)
begin
  descend(0)
rescue SystemStackError
  puts 'overflow'
end
5.times { GC.start }
GC.compact if GC.respond_to?(:compact)
p Ractor.new { 42 }.take
at_exit { puts 'end' }
$stdout.flush
exec('sh', '-c', 'exit 7') if fork.nil?
Process.wait
p $?.exitstatus
exit 6
