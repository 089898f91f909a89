// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx_names.h"

#include <algorithm>
#include <atomic>

#include "collector/base/libc.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/sources/nvtx_text.h"
#include "formats/core/wire.h"

namespace gpuprof {
namespace {

constexpr size_t kMostNames = 4096;

// `name` and `number` may change while another thread reads; the rest is complete before the row
// is counted.
struct Row {
  NvtxObject object;
  uint64_t id, domain;
  std::atomic<const void*> name;  // as keep_nvtx_name() gives it
  std::atomic<uint64_t> number;   // of the naming, from 1 on
};

constinit Row g_rows[kMostNames]{};
std::atomic<size_t> g_count{0};
std::atomic<uint64_t> g_newest{0};
Mutex g_lock;  // of those who name

}  // namespace

void name_nvtx_object(NvtxObject object, uint64_t id, uint64_t domain, std::string_view name) {
  survive_fork_with_nvtx_names();
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) at_fork_in_child([] { g_lock.unlock(); });
  const void* const kept = keep_nvtx_name(name);
  const LockGuard guard(g_lock);
  const size_t count = g_count.load(std::memory_order_relaxed);
  Row* const end = g_rows + count;
  Row* const row = std::find_if(g_rows, end, [&](const Row& each) {
    return each.object == object && each.id == id && each.domain == domain;
  });
  if (count == kMostNames && row == end) return count_loss(Loss::string_table_full);
  if (row == end) row->object = object, row->id = id, row->domain = domain;
  row->name.store(kept, std::memory_order_release);
  const uint64_t number = g_newest.load(std::memory_order_relaxed) + 1;
  row->number.store(number, std::memory_order_release);
  if (row == end) g_count.store(count + 1, std::memory_order_release);
  g_newest.store(number, std::memory_order_release);
}

std::string_view nvtx_thread_name(uint32_t thread) {
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const Row& row = g_rows[i];
    if (row.object == NvtxObject::thread && row.id == thread) {
      return nvtx_name(row.name.load(std::memory_order_acquire));
    }
  }
  return {};
}

uint64_t encode_nvtx_names(ByteBuffer& out, uint64_t written) {
  const uint64_t newest = g_newest.load(std::memory_order_acquire);
  if (newest == written) return written;
  WireWriter wire(out);
  const size_t count = g_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const Row& row = g_rows[i];
    // One that is named anew meanwhile is written again the next time.
    if (row.number.load(std::memory_order_acquire) <= written) continue;
    const size_t mark = wire.open(1);
    wire.uint(1, static_cast<uint32_t>(row.object));
    wire.uint(2, row.id);
    wire.text(3, nvtx_domain_name(row.domain));
    wire.text(4, nvtx_name(row.name.load(std::memory_order_acquire)));
    wire.close(mark);
  }
  return wire.ok() ? newest : written;
}

}  // namespace gpuprof
