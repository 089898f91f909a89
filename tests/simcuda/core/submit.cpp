// SPDX-License-Identifier: Apache-2.0
// Putting work into streams, waiting for it, and telling the world when it is resolved.

#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/core.h"
#include "tests/simcuda/core/settings.h"
#include "tests/simcuda/core/truth_lines.h"
#include "tests/simcuda/core/truth_log.h"

namespace gpuprof::simcuda {
namespace {

// A wait in which memory for the log is got without its becoming longer.
constexpr uint64_t kLongWaitNs = 1'000'000;

int activity_kind(const GpuOpInfo& info) {
  switch (info.kind) {
    case GpuOpKind::kKernel: return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case GpuOpKind::kMemcpy:
      return info.copy_kind == CopyKind::kPtoP ? CUPTI_ACTIVITY_KIND_MEMCPY2
                                               : CUPTI_ACTIVITY_KIND_MEMCPY;
    case GpuOpKind::kMemset: return CUPTI_ACTIVITY_KIND_MEMSET;
    case GpuOpKind::kGraph: return CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
    case GpuOpKind::kMarker: break;
  }
  return CUPTI_ACTIVITY_KIND_CUDA_EVENT;
}

NodeType node_type(const Work& work) {
  switch (work.info.kind) {
    case GpuOpKind::kMemcpy: return NodeType::kMemcpy;
    case GpuOpKind::kMemset: return NodeType::kMemset;
    case GpuOpKind::kMarker: return NodeType::kHost;
    default: return NodeType::kKernel;
  }
}

}  // namespace

// Stream order, and the legacy default stream's rule: it waits for all blocking streams, and they
// wait for it.
std::vector<OpPtr> Core::ordering(const Stream& stream) const {
  const Device& device = devices_[static_cast<size_t>(stream.device)];
  std::vector<OpPtr> after{stream.last};
  if (stream.legacy) {
    for (const auto& other : device.streams) {
      if (other->blocking) after.push_back(other->last);
    }
    for (const Orphan& orphan : device.orphans) {
      if (orphan.blocking) after.push_back(orphan.op);
    }
  } else if (stream.blocking) {
    after.push_back(device.legacy_stream->last);
  }
  return after;
}

uint64_t Core::arrival() { return now_ns() + settings().launch_latency_ns; }

OpPtr Core::submit(Stream& stream, Work work, uint32_t correlation, const OpPtr& also_after) {
  if (stream.capture != nullptr) {
    Graph::Node node;
    node.type = node_type(work);
    node.work = std::move(work);
    if (node.work.info.kind != GpuOpKind::kMarker || node.work.gate != nullptr) {
      add_node(stream, std::move(node));
    }
    return nullptr;
  }
  return run(stream, work, correlation, wanted(activity_kind(work.info)), arrival(), also_after);
}

void Core::add_node(Stream& stream, Graph::Node node) {
  Graph& graph = *stream.capture->graph;
  node.work.info.device = stream.device;
  node.id = stream.last_node = node_id(graph.id, graph.nodes.size());
  thread_state().created_nodes.push_back({GraphChange::kNodeCreated,
                                          reinterpret_cast<cudaGraph_t>(&graph), nullptr, 0,
                                          node.id, node.id, static_cast<int>(node.type)});
  graph.nodes.push_back(std::move(node));
}

// Gives up the lock that the caller holds meanwhile.
void Core::wait_for_room(Stream& stream) {
  const uint32_t most = settings().queue;
  const auto first_is_over = [&] {
    return !stream.waiting.empty() && finished({stream.waiting.front()});
  };
  while (most != 0) {
    while (first_is_over()) stream.waiting.pop_front();
    if (stream.waiting.size() < most) return;
    Lock held(mutex_, std::adopt_lock);
    changed_.wait_for(held, std::chrono::microseconds(20));
    held.release();
  }
}

OpPtr Core::run(Stream& stream, const Work& work, uint32_t correlation, bool traced,
                uint64_t earliest, const OpPtr& also_after) {
  Device& device = devices_[static_cast<size_t>(stream.device)];
  wait_for_room(stream);
  earliest = std::max(earliest, settings().queue != 0 ? arrival() : 0);
  auto op = std::make_shared<Op>();
  op->info = work.info;
  op->info.device = stream.device;
  op->info.context_id = stream.context_id;
  op->info.stream_id = stream.id;
  op->info.correlation = correlation;
  op->info.arrived = earliest;
  op->duration = work.duration;
  op->begin_of = work.begin_of;
  op->event_id = work.event_id;
  op->event_sync_id = work.event_sync_id;
  op->earliest = earliest;
  op->traced = traced;
  if (work.engine == EngineKind::kHtoD) op->engine = &device.h2d;
  if (work.engine == EngineKind::kDtoH) op->engine = &device.d2h;
  if (work.gate != nullptr) op->gate = work.gate->make();
  if (const uint32_t queues = settings().connections) {
    op->dispatched_after = std::exchange(device.newest_queued[stream.id % queues], op);
  }
  std::vector<OpPtr> after = ordering(stream);
  after.push_back(also_after);
  timeline_.enqueue(op, after);
  stream.last = op;
  if (settings().queue != 0) stream.waiting.push_back(op);
  return op;
}

std::vector<OpPtr> Core::tail(const Stream& stream) const {
  if (stream.legacy) return ordering(stream);
  return {stream.last};
}

std::vector<OpPtr> Core::tail(const Device& device) const {
  std::vector<OpPtr> ops;
  for (const Orphan& orphan : device.orphans) ops.push_back(orphan.op);
  for (const auto& stream : device.streams) ops.push_back(stream->last);
  return ops;
}

bool Core::finished(const std::vector<OpPtr>& ops) {
  if (timeline_.progress()) changed_.notify_all();
  const uint64_t now = now_ns();
  return std::all_of(ops.begin(), ops.end(), [now](const OpPtr& op) {
    return op == nullptr || (op->resolved && op->info.end <= now);
  });
}

uint64_t Core::block_on(Lock held, std::vector<OpPtr> ops, uint64_t early_ns) {
  uint64_t end = 0;
  for (const OpPtr& op : ops) {
    if (op == nullptr) continue;
    while (!op->resolved) {
      if (timeline_.progress()) {
        changed_.notify_all();
      } else {
        changed_.wait_for(held, std::chrono::microseconds(50));
      }
    }
    end = std::max(end, op->info.end);
  }
  held.unlock();
  end -= std::min(end, early_ns);
  if (end > now_ns() + kLongWaitNs) TruthLog::instance().make_room(true);
  sleep_until_ns(end);
  return end;
}

size_t Core::progress() {
  const Lock held = lock();
  if (timeline_.progress()) changed_.notify_all();
  return timeline_.pending();
}

void Core::resolved(const Op& op) {
  if (op.info.kind != GpuOpKind::kMarker) write_truth(op.info);
  CuptiSink* cupti = sink();
  if (cupti == nullptr || !op.traced) return;
  if (op.info.kind != GpuOpKind::kMarker) {
    cupti->gpu_op(op.info);
  } else if (op.event_id != 0) {
    cupti->event_record(EventRecordInfo{op.info.device, op.info.context_id, op.info.stream_id,
                                        op.event_id, op.event_sync_id, op.info.correlation,
                                        op.info.end});
  }
}

void Core::report_sync(const SyncInfo& info) {
  write_truth(info);
  if (wanted(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) sink()->sync(info);
}

void Core::report_reset(uint32_t context_id) {
  if (CuptiSink* const cupti = sink()) cupti->context_reset(context_id);
}

void Core::report_memory(const MemoryInfo& info) {
  if (wanted(CUPTI_ACTIVITY_KIND_MEMORY2)) sink()->memory(info);
}

}  // namespace gpuprof::simcuda
