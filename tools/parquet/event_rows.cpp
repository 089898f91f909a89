// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/event_rows.h"

#include "formats/trace/collective_calls.h"
#include "tools/analysis/walks.h"
#include "tools/parquet/row_place.h"

namespace gpuprof::parquet_export {
namespace {

using namespace analysis;

template <typename Enum>
void put_times(Row<Enum>& row, int64_t begin, int64_t end) {
  row.put(Enum::begin_ns, begin);
  row.put(Enum::duration_ns, end - begin);
}

template <typename Enum>
void put_operator(Row<Enum>& row, const Exported& source, const Event& event) {
  const EventIndex of = source.process->operator_of(event);
  row.put_if(of != EventIndex::none, Enum::operator_id, number(of));
}

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::gpu_kernel: return "kernel";
    case Kind::gpu_copy: return "copy";
    case Kind::gpu_set: return "set";
    default: return "graph";
  }
}

const char* class_text(WorkClass kind) {
  switch (kind) {
    case WorkClass::compute: return "compute";
    case WorkClass::communication: return "communication";
    case WorkClass::transfer: return "transfer";
  }
  return "";
}

const char* class_text(CallClass kind) {
  switch (kind) {
    case CallClass::issue: return "issue";
    case CallClass::allocate: return "allocate";
    case CallClass::synchronize: return "synchronize";
  }
  return "";
}

bool is_operator(Kind kind) {
  return kind == Kind::op || kind == Kind::annotation || kind == Kind::nvtx_range ||
         kind == Kind::module;
}

}  // namespace

template <>
std::vector<RowKey> sorted_keys<GpuWork>(std::span<const Exported> sources) {
  std::vector<RowKey> keys;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].timeline) continue;
    const Timeline& timeline = *sources[i].timeline;
    Work work;
    for (uint32_t stream = 0; stream < timeline.streams.size(); ++stream) {
      const auto [first, end] = timeline.work_of_steps(stream);
      // As each_issued_work_of_steps(): without a recorded call, with the work before.
      int64_t last = kNotIssued;
      for (StreamWalk walk(timeline, stream); walk.next(work);) {
        const bool in_steps = work.event >= first && work.event < end;
        int64_t step = RowKey::kNoStep;
        if (in_steps) {
          const int64_t issued = timeline.call_begin_of(work);
          if (issued != kNotIssued) last = issued;
          step = step_of(timeline, last == kNotIssued ? work.begin : last);
        }
        keys.push_back({step, work.begin, i, work.event, stream, in_steps});
      }
    }
  }
  sort(keys);
  return keys;
}

template <>
void add_rows<GpuWork>(std::span<const Exported> sources, std::span<const RowKey> keys,
                       TableFile& file) {
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const Timeline& timeline = *source.timeline;
    const Work work = timeline.work(key.event, key.lane);
    const Event event = source.process->events[key.event];
    const Shape& shape = source.trace->shape(event);
    const int64_t issued = timeline.call_begin_of(work);
    const StreamName& stream = timeline.streams[key.lane].name;
    const bool kernel = shape.kind == Kind::gpu_kernel;
    const bool moves = shape.kind == Kind::gpu_copy || shape.kind == Kind::gpu_set;
    file.add<GpuWork>([&](Row<GpuWork>& row) {
      put_place(row, source, key);
      row.put(GpuWork::in_steps, key.in_steps);
      put_times(row, work.begin, work.end);
      row.put_if(issued != kNotIssued, GpuWork::issued_ns, issued);
      row.put(GpuWork::device, stream.device);
      row.put(GpuWork::stream, stream.stream);
      row.word(GpuWork::kind, kind_text(shape.kind));
      row.word(GpuWork::work_class, class_text(work.kind));
      row.text(GpuWork::name, source.trace->strings, shape.label);
      row.put_if(event.correlation != 0, GpuWork::correlation, event.correlation);
      put_operator(row, source, event);
      row.put_if(moves, GpuWork::bytes, source.process->extra(event).bytes);
      row.put_if(kernel && shape.grid.x, GpuWork::blocks,
                 uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z);
      row.put_if(kernel && shape.block.x, GpuWork::threads_per_block,
                 shape.block.x * shape.block.y * shape.block.z);
      row.put_if(kernel && shape.registers_per_thread, GpuWork::registers_per_thread,
                 shape.registers_per_thread);
      row.put_if(kernel && shape.grid.x, GpuWork::shared_bytes,
                 shape.static_shared_bytes + shape.dynamic_shared_bytes);
      row.put_if(shape.graph != 0, GpuWork::graph, shape.graph);
    });
  }
}

template <>
std::vector<RowKey> sorted_keys<Calls>(std::span<const Exported> sources) {
  std::vector<RowKey> keys;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].timeline) continue;
    const Timeline& timeline = *sources[i].timeline;
    each_call(timeline, [&](const Call& call) {
      const int64_t step = step_of(timeline, call.begin);
      keys.push_back({step, call.begin, i, call.event, call.thread, step != RowKey::kNoStep});
    });
  }
  sort(keys);
  return keys;
}

template <>
void add_rows<Calls>(std::span<const Exported> sources, std::span<const RowKey> keys,
                     TableFile& file) {
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const Call call = source.timeline->call(key.event, key.lane);
    const Event event = source.process->events[key.event];
    const Shape& shape = source.trace->shape(event);
    const uint64_t bytes = source.process->extra(event).bytes;
    const bool sized = shape.kind == Kind::copy || shape.kind == Kind::set ||
                       shape.kind == Kind::alloc || (shape.kind == Kind::dealloc && bytes != 0);
    file.add<Calls>([&](Row<Calls>& row) {
      put_place(row, source, key);
      put_times(row, call.begin, call.end);
      row.put(Calls::thread, source.timeline->threads[key.lane].id);
      row.text(Calls::name, source.trace->strings, shape.name);
      row.word(Calls::call_class, class_text(call.kind));
      row.put(Calls::blocking, call.blocking);
      row.put_if(has_result(shape), Calls::result, shape.result);
      row.put_if(event.correlation != 0, Calls::correlation, event.correlation);
      put_operator(row, source, event);
      row.put_if(sized, Calls::bytes, bytes);
    });
  }
}

template <>
std::vector<RowKey> sorted_keys<Operators>(std::span<const Exported> sources) {
  std::vector<RowKey> keys;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].timeline) continue;
    const Timeline& timeline = *sources[i].timeline;
    for (uint32_t lane = 0; lane < timeline.threads.size(); ++lane) {
      const HostThread& thread = timeline.threads[lane];
      for (uint32_t at = thread.first_event; at < thread.end_event; ++at) {
        if (!is_operator(timeline.shape(at).kind)) continue;
        const int64_t begin = timeline.events().begin_of(at), step = step_of(timeline, begin);
        keys.push_back({step, begin, i, at, lane, step != RowKey::kNoStep});
      }
    }
  }
  sort(keys);
  return keys;
}

template <>
void add_rows<Operators>(std::span<const Exported> sources, std::span<const RowKey> keys,
                         TableFile& file) {
  for (const RowKey& key : keys) {
    const Exported& source = sources[key.source];
    const EventTable& events = source.process->events;
    const Shape& shape = source.timeline->shape(key.event);
    file.add<Operators>([&](Row<Operators>& row) {
      put_place(row, source, key);
      put_times(row, key.begin, events.end_of(key.event));
      row.put(Operators::id, key.event);
      row.put(Operators::thread, source.timeline->threads[key.lane].id);
      row.word(Operators::kind, kind_name(shape.kind));
      row.text(Operators::name, source.trace->strings, shape.name);
      row.text(Operators::input_dims, source.trace->strings, shape.input_dims);
      row.text(Operators::input_types, source.trace->strings, shape.input_types);
    });
  }
}

}  // namespace gpuprof::parquet_export
