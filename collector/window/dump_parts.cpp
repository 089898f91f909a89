// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "collector/base/os.h"
#include "collector/cupti/cupti_session.h"
#include "collector/record/cuda_start.h"
#include "collector/record/ring.h"
#include "collector/record/session.h"
#include "collector/samples/processor_waits.h"
#include "collector/samples/thread_times.h"
#include "collector/samples/workers.h"
#include "collector/sources/device_info.h"
#include "collector/sources/graphs.h"
#include "collector/sources/memory_log.h"
#include "collector/sources/nvml.h"
#include "collector/sources/nvtx_names.h"
#include "collector/sources/replayed_graphs.h"
#include "collector/stacks/mapped_files.h"
#include "collector/window/identity.h"
#include "collector/window/window_dump.h"

namespace gpuprof {

// The first anchor and the newest always stay; in between, evenly thinned out.
void add_anchor() {
  RingHeader& header = *ring()->header;
  uint32_t count = header.anchor_count.load(std::memory_order_relaxed);
  if (count == kMaxAnchors) {
    for (uint32_t i = 1; i < kMaxAnchors / 2; ++i) header.anchors[i] = header.anchors[i * 2];
    count = kMaxAnchors / 2;
  }
  header.anchors[count] = read_anchor();
  header.anchor_count.store(count + 1, std::memory_order_release);
}

void keep_identity(const ByteBuffer& header) {
  RingRegion& identity = ring()->header->identity;
  if (header.size() > identity.bytes) return;
  identity.used.store(0);  // none rather than parts of two
  std::memcpy(ring()->region<void>(identity), header.data(), header.size());
  identity.used.store(header.size(), std::memory_order_release);
}

void write_header(Drain& drain) {
  drain.body.clear();
  drain.vendor_code_may_map = vendor_code_may_map();
  drain.awaits_cuda = drain.vendor_code_may_map && !session().loads_data && !driver_has_started();
  if (encode_header(drain.body, gpu_times_missing(), drain.vendor_code_may_map)) {
    drain.file.write(ChunkKind::header, drain.body);
  }
  keep_identity(drain.body);
}

void write_cuda(Drain& drain) {
  if (!drain.awaits_cuda || !driver_has_started()) return;
  drain.awaits_cuda = false;
  drain.body.clear();
  WireWriter out(drain.body);
  if (encode_devices_and_versions(out) && out.ok()) drain.file.write(ChunkKind::cuda, drain.body);
  drain.body.clear();
  if (encode_header(drain.body, gpu_times_missing(), true)) keep_identity(drain.body);
}

void write_counters(Drain& drain) {
  drain.body.clear();
  if (encode_counters(drain.body, ring()->header->clock_shift)) {
    drain.file.write(ChunkKind::counters, drain.body);
  }
  drain.body.clear();
  if (encode_processor_waits(drain.body, ring()->header->clock_shift)) {
    drain.file.write(ChunkKind::counters, drain.body);
  }
  drain.body.clear();
  if (encode_thread_times(drain.body, ring()->header->clock_shift)) {
    drain.file.write(ChunkKind::counters, drain.body);
  }
  drain.body.clear();
  if (encode_workers(drain.body, ring()->header->clock_shift)) {
    drain.file.write(ChunkKind::workers, drain.body);
  }
}

void keep_modules(Drain& drain) {
  const size_t known = note_modules();
  if (!drain.window_open || known == drain.modules_written) return;
  drain.body.clear();
  if (encode_known_modules(drain.body)) drain.file.write(ChunkKind::modules, drain.body);
  drain.modules_written = known;
}

// A piece at a time, as many as there are.
void write_graph_nodes(Drain& drain) {
  for (;;) {
    drain.body.clear();
    const size_t end =
        encode_graph_nodes(drain.body, ring()->header->clock_shift, drain.graph_nodes);
    if (end == drain.graph_nodes) return;
    drain.file.write(ChunkKind::graphs, drain.body);
    drain.graph_nodes = end;
    ring()->header->graph_nodes_written.store(end, std::memory_order_release);
  }
}

void write_replayed_graphs(Drain& drain) {
  for (;;) {
    drain.body.clear();
    const uint64_t newest = encode_replayed_graphs(drain.body, ring()->header->clock_shift,
                                                   drain.collector.names(), drain.replayed_graphs);
    if (newest == drain.replayed_graphs) return;
    drain.file.write(ChunkKind::graphs, drain.body);
    drain.replayed_graphs = newest;
  }
}

void write_nvtx_names(Drain& drain) {
  drain.body.clear();
  const uint64_t newest = encode_nvtx_names(drain.body, drain.nvtx_names);
  if (newest == drain.nvtx_names) return;
  drain.file.write(ChunkKind::nvtx_names, drain.body);
  drain.nvtx_names = newest;
}

void write_failed_allocation(Drain& drain) {
  drain.body.clear();
  if (encode_failed_allocation(drain.body, drain.failures_written)) {
    drain.file.write(ChunkKind::live_memory, drain.body);
  }
}

}  // namespace gpuprof
