// SPDX-License-Identifier: Apache-2.0
// Activity records on their way to the client: kept until the device has passed them, then written
// into the client's buffers and handed over by a thread of its own.
#pragma once

#include <cupti.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <vector>

#include "collector/cupti/cupti_v2.h"
#include "tests/simcuda/cupti/clock_map.h"
#include "tests/simcuda/cupti/selected_fields.h"

namespace gpuprof::simcuda {

constexpr size_t kKernel12Bytes = 232;  // sizeof(CUpti_ActivityKernel12), CUDA 13.3
constexpr size_t kMaxRecordBytes = kKernel12Bytes + 64;  // and with selected fields, aligned
static_assert(kMaxRecordBytes >= sizeof(CUpti_ActivityKernel10));

// A record whose time fields still hold CLOCK_MONOTONIC ns.
struct PendingRecord {
  uint64_t ready = 0;  // when the device is past it
  uint16_t bytes = 0;
  uint8_t time_count = 0;
  uint8_t time_offsets[3] = {0, 0, 0};
  bool default_clock = false;  // of CLOCK_REALTIME, whatever clock was registered
  uint32_t context_id = 0;     // of work on a GPU
  alignas(8) unsigned char data[kMaxRecordBytes];

  CUpti_ActivityKind kind() const { return reinterpret_cast<const CUpti_Activity*>(data)->kind; }

  template <typename Record>
  static PendingRecord of(const Record& record, uint64_t ready) {
    static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= kMaxRecordBytes);
    PendingRecord pending;
    pending.ready = ready;
    pending.bytes = sizeof(Record);
    std::memset(pending.data, 0, sizeof pending.data);
    std::memcpy(pending.data, &record, sizeof(Record));
    return pending;
  }
  PendingRecord& with_time_at(size_t offset) {
    time_offsets[time_count++] = static_cast<uint8_t>(offset);
    return *this;
  }
  // As where CUPTI could not get them.
  void forget_times() {
    for (uint8_t i = 0; i < time_count; ++i) {
      std::memset(data + time_offsets[i], 0, sizeof(uint64_t));
    }
    time_count = 0;
  }
};

class Recorder {
 public:
  ClockMap& clock() { return clock_; }
  SelectedFields& selected_fields() { return selected_; }

  void set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                     CUpti_BuffersCallbackCompleteFunc complete);
  void set_callbacks(CuptiV2Request request, CuptiV2Complete complete);

  // For good: the worker ends, and what was not delivered is lost.
  void stop();

  // A context ends: what it did and was not delivered is lost.
  void forget_context(uint32_t context_id);

  // Any thread, possibly under the core's lock.
  void add(const PendingRecord& record);
  void add_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end);
  void count_dropped() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  // Delivers what the device is past, or everything, and waits until that is done. Does nothing
  // when called from a buffer callback.
  CUptiResult flush(bool everything);

  // Asks for a buffer in the calling thread where a record waits for the first one. No lock held.
  void ask_in_call();

  // By deliver_in_calls: what the device is past of the buffers that are full, in the calling
  // thread.
  void deliver_in_call();

  // Whether records may come: the worker then looks for them every few milliseconds.
  void set_active(bool active);

  // The count since the last call.
  uint64_t take_dropped() { return dropped_.exchange(0, std::memory_order_relaxed); }

  // Called by the worker before it looks for records, with no lock held.
  void set_progress(void (*progress)()) { progress_ = progress; }
  void set_wants_overhead(bool wanted) { wants_overhead_.store(wanted); }

  // The size of a record of this kind, or 0.
  static size_t record_size(CUpti_ActivityKind kind);

 private:
  struct Buffer {
    uint8_t* data = nullptr;
    size_t size = 0;
    size_t used = 0;
    size_t records = 0;
    size_t max_records = 0;
  };

  void start_worker();
  void work();
  std::vector<PendingRecord> take_ready(bool flushing, bool everything);
  std::vector<PendingRecord> take_whole_buffers(bool flushing, uint64_t now);
  size_t buffer_size();
  bool hand_over(bool flushing, bool everything);
  void write(PendingRecord& record);
  bool have_room(size_t bytes);
  bool has_client() const;
  void take_buffer();
  void deliver();

  ClockMap clock_;
  SelectedFields selected_;
  std::atomic<CUpti_BuffersCallbackRequestFunc> request_{nullptr};
  std::atomic<CUpti_BuffersCallbackCompleteFunc> complete_{nullptr};
  std::atomic<CuptiV2Request> request_v2_{nullptr};
  std::atomic<CuptiV2Complete> complete_v2_{nullptr};
  std::atomic<void (*)()> progress_{nullptr};
  std::atomic<uint64_t> dropped_{0};
  std::atomic<bool> wants_overhead_{false};
  std::atomic<bool> asked_{false};  // for a buffer, since the last was given back

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<PendingRecord> pending_;
  bool active_ = false;
  bool stopped_ = false;
  bool flush_everything_ = false;
  uint64_t flush_requested_ = 0;
  uint64_t flush_finished_ = 0;
  int worker_pid_ = 0;  // 0: none; a forked child has none either

  Buffer request_buffer();
  void complete_buffer(const Buffer& buffer);
  void hold_buffers();
  void release_held();

  std::mutex delivery_;  // guards what follows; held while the client's callbacks run
  Buffer buffer_;
  std::vector<Buffer> held_;  // by SIMCUDA_CUPTI=hold_buffers=N, as for N more threads
};

}  // namespace gpuprof::simcuda
