// SPDX-License-Identifier: Apache-2.0
// Rows of host samples and counters.
#include <fmt/format.h>

#include "tools/parquet/row_place.h"

namespace gpuprof::parquet_export {

template <>
std::vector<RowKey> sorted_keys<Samples>(std::span<const Exported> sources) {
  std::vector<RowKey> keys;
  const auto add = [&](const Exported& source, int64_t time, RowKey key) {
    if (source.timeline) key.step = step_of(*source.timeline, time);
    key.begin = time;
    keys.push_back(key);
  };
  for (uint32_t i = 0; i < sources.size(); ++i) {
    const Process& process = *sources[i].process;
    for (uint32_t at = 0; at < process.samples.size(); ++at) {
      add(sources[i], process.samples[at].time, {RowKey::kNoStep, 0, i, at, RowKey::kStack, false});
    }
    for (uint32_t series = 0; series < process.counters.size(); ++series) {
      const auto& points = process.counters[series].points;
      for (uint32_t at = 0; at < points.size(); ++at) {
        add(sources[i], points[at].time, {RowKey::kNoStep, 0, i, at, series, false});
      }
    }
  }
  sort(keys);
  return keys;
}

namespace {

void put_stack(Row<Samples>& row, const Process& process, const HostSample& sample) {
  const std::vector<std::string> frames = process.stacks.lines(sample.stack);
  row.word(Samples::kind, "stack");
  row.put(Samples::thread, sample.thread);
  row.null(Samples::device);
  row.text(Samples::name, frames.empty() ? "" : frames[0]);
  row.text(Samples::stack, fmt::format("{}", fmt::join(frames, "\n")));
  row.null(Samples::value);
  row.null(Samples::unit);
}

void put_counter(Row<Samples>& row, const CounterSeries& series, uint64_t value) {
  const CounterText& text = kCounterTexts[static_cast<size_t>(series.counter)];
  row.word(Samples::kind, "counter");
  row.null(Samples::thread);
  row.put_if(series.device != Shape::kAbsent, Samples::device, series.device);
  row.text(Samples::name, text.name);
  row.null(Samples::stack);
  row.put(Samples::value, value);
  row.text(Samples::unit, text.unit);
}

}  // namespace

template <>
void add_rows<Samples>(std::span<const Exported> sources, std::span<const RowKey> keys,
                       TableFile& file) {
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const Process& process = *source.process;
    file.add<Samples>([&](Row<Samples>& row) {
      put_place(row, source, key);
      row.put(Samples::time_ns, key.begin);
      if (key.lane == RowKey::kStack) {
        put_stack(row, process, process.samples[key.event]);
      } else {
        const CounterSeries& series = process.counters[key.lane];
        put_counter(row, series, series.points[key.event].value);
      }
    });
  }
}

}  // namespace gpuprof::parquet_export
