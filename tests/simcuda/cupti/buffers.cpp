// SPDX-License-Identifier: Apache-2.0
// The worker thread: from pending records to the client's buffers.
#include <cupti.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/patient_wait.h"
#include "tests/simcuda/core/simcuda.h"
#include "tests/simcuda/core/version.h"
#include "tests/simcuda/cupti/records.h"
#include "tests/simcuda/cupti/session.h"

namespace gpuprof::simcuda {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(10);

thread_local bool on_worker = false;

uint64_t realtime_of(uint64_t monotonic) {
  timespec real{};
  ::clock_gettime(CLOCK_REALTIME, &real);
  return static_cast<uint64_t>(real.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(real.tv_nsec) -
         now_ns() + monotonic;
}

}  // namespace

void Recorder::set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                             CUpti_BuffersCallbackCompleteFunc complete) {
  request_.store(request);
  complete_.store(complete);
}

void Recorder::set_callbacks(CuptiV2Request request, CuptiV2Complete complete) {
  request_v2_.store(request);
  complete_v2_.store(complete);
}

void Recorder::stop() {
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  active_ = false;
  pending_.clear();
  wake_.notify_all();
  wait_until_done(done_, lock, [&] { return worker_pid_ != ::getpid() || on_worker; });
}

void Recorder::add(const PendingRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_.push_back(record);
  auto* const activity = reinterpret_cast<const CUpti_Activity*>(record.data);
  const size_t selected = selected_.record_size(activity->kind);
  if (const size_t size = selected ? selected : record_size(activity->kind)) {
    pending_.back().bytes = static_cast<uint16_t>(size);
  }
}

void Recorder::forget_context(uint32_t context_id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(pending_, [&](const PendingRecord& each) { return each.context_id == context_id; });
}

void Recorder::set_active(bool active) {
  const std::lock_guard<std::mutex> lock(mutex_);
  active_ = active;
  if (active) start_worker();
  wake_.notify_all();
}

void Recorder::start_worker() {
  if (worker_pid_ == ::getpid() || stopped_) return;
  worker_pid_ = ::getpid();
  std::thread([this] { work(); }).detach();
}

CUptiResult Recorder::flush(bool everything) {
  if (on_worker) return CUPTI_SUCCESS;
  std::unique_lock<std::mutex> lock(mutex_);
  if (worker_pid_ != 0 && worker_pid_ != ::getpid()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (stopped_) return CUPTI_SUCCESS;
  start_worker();
  const uint64_t mine = ++flush_requested_;
  flush_everything_ |= everything;
  wake_.notify_all();
  wait_until_done(done_, lock, [&] { return flush_finished_ >= mine || stopped_; });
  return CUPTI_SUCCESS;
}

void Recorder::work() {
  on_worker = true;
  pthread_setname_np(pthread_self(), "simcupti");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const auto asked = [this] { return flush_requested_ != flush_finished_; };
    if (!asked()) {
      wake_.wait_for(lock, active_ || !pending_.empty() ? kPollInterval : kLookAgain);
    }
    const uint64_t request = flush_requested_;
    const bool flushing = request != flush_finished_;
    const bool everything = std::exchange(flush_everything_, false);
    lock.unlock();
    if (void (*progress)() = progress_.load()) progress();
    clock_.sample();
    const uint64_t begin = now_ns();
    if (flushing || !switches().deliver_in_calls) {
      const std::lock_guard<std::mutex> delivery(delivery_);
      if (hand_over(flushing, everything) && flushing) {
        add_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, begin, now_ns());
      }
      if (flushing) release_held();
    }
    lock.lock();
    flush_finished_ = request;
    done_.notify_all();
  }
  worker_pid_ = 0;
  done_.notify_all();
}

// Whether a buffer was given back.
bool Recorder::hand_over(bool flushing, bool everything) {
  for (PendingRecord& record : take_ready(flushing, everything)) write(record);
  if (buffer_.records == 0 || !(flushing || switches().whole_buffers)) return false;
  deliver();
  return true;
}

// A call whose record finds no buffer asks for one itself: the log of
// https://github.com/pytorch/kineto/issues/1020 has such requests in the program's threads.
void Recorder::ask_in_call() {
  if (asked_.load(std::memory_order_relaxed) || on_worker) return;
  const std::unique_lock<std::mutex> delivery(delivery_, std::try_to_lock);
  if (!delivery) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pending_.empty() || worker_pid_ != ::getpid()) return;
  }
  if (buffer_.data == nullptr && has_client()) take_buffer();
}

void Recorder::deliver_in_call() {
  if (!switches().deliver_in_calls || on_worker) return;
  const std::unique_lock<std::mutex> delivery(delivery_, std::try_to_lock);
  if (!delivery) return;
  const uint64_t begin = now_ns();
  if (!hand_over(false, false)) return;
  simcuda_truth_note(
      fmt::format(R"({{"t":"profiler","tid":{},"begin":{},"end":{}}})", ::gettid(), begin, now_ns())
          .c_str());
}

// In the order of arrival, which within a stream is the order of execution.
std::vector<PendingRecord> Recorder::take_ready(bool flushing, bool everything) {
  const uint64_t now = now_ns();
  std::vector<PendingRecord> ready;
  if (switches().whole_buffers && !everything) {
    ready = take_whole_buffers(flushing, now);
  } else {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto first_late =
        std::stable_partition(pending_.begin(), pending_.end(),
                              [&](const PendingRecord& r) { return everything || r.ready <= now; });
    ready.assign(pending_.begin(), first_late);
    pending_.erase(pending_.begin(), first_late);
  }
  for (PendingRecord& record : ready) {
    if (record.ready > now) record.forget_times();  // "incomplete", says cuptiActivityFlushAll
  }
  if (switches().reversed_order) std::reverse(ready.begin(), ready.end());
  return ready;
}

// A record has its place in a buffer from the call on that makes it; a buffer is handed over once
// all of its records are complete, if it is full or there is a flush.
std::vector<PendingRecord> Recorder::take_whole_buffers(bool flushing, uint64_t now) {
  std::vector<PendingRecord> ready, left;
  const size_t size = buffer_size();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t begin = 0, end = 0; begin < pending_.size(); begin = end) {
    size_t bytes = 0;
    bool complete = true;
    const size_t most = buffer_.max_records ? buffer_.max_records : SIZE_MAX;
    for (; end < pending_.size() && bytes + pending_[end].bytes <= size && end - begin < most;
         ++end) {
      bytes += pending_[end].bytes;
      complete = complete && pending_[end].ready <= now;
    }
    const bool full = end < pending_.size();
    if (end == begin) break;  // not one fits
    auto& to = complete && (full || flushing) ? ready : left;
    to.insert(to.end(), pending_.begin() + static_cast<ptrdiff_t>(begin),
              pending_.begin() + static_cast<ptrdiff_t>(end));
  }
  if (!ready.empty()) pending_ = std::move(left);
  return ready;
}

// Of the buffers that the client lends; one is asked for as the first record comes.
size_t Recorder::buffer_size() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (pending_.empty()) return 0;
  }
  if (buffer_.data == nullptr && has_client()) take_buffer();
  return buffer_.data != nullptr ? buffer_.size : SIZE_MAX;  // refused: all are dropped
}

void Recorder::write(PendingRecord& record) {
  for (uint8_t i = 0; i < record.time_count; ++i) {
    uint64_t time = 0;
    std::memcpy(&time, record.data + record.time_offsets[i], sizeof time);
    time = record.default_clock ? realtime_of(time) : clock_.convert(time);
    std::memcpy(record.data + record.time_offsets[i], &time, sizeof time);
  }
  const CUpti_ActivityKind kind = record.kind();
  if (selected_.record_size(kind) != 0) {
    unsigned char packed[kMaxRecordBytes];
    selected_.pack(kind, record.data, packed);
    std::memcpy(record.data, packed, record.bytes);
  }
  // A client that reads past the end of a record gets no zeros.
  std::memset(record.data + record.bytes, 0xa5, sizeof record.data - record.bytes);
  if (!have_room(record.bytes)) {
    count_dropped();
    return;
  }
  std::memcpy(buffer_.data + buffer_.used, record.data, record.bytes);
  buffer_.used += record.bytes;
  ++buffer_.records;
}

bool Recorder::have_room(size_t bytes) {
  const auto fits = [&] {
    return buffer_.data != nullptr && buffer_.used + bytes <= buffer_.size &&
           (buffer_.max_records == 0 || buffer_.records < buffer_.max_records);
  };
  if (fits()) return true;
  if (buffer_.data != nullptr) deliver();
  if (!has_client()) return false;
  take_buffer();
  return fits();
}

bool Recorder::has_client() const { return request_.load() || request_v2_.load(); }

void Recorder::take_buffer() {
  hold_buffers();
  buffer_ = request_buffer();
  asked_.store(true, std::memory_order_relaxed);
}

Recorder::Buffer Recorder::request_buffer() {
  Buffer buffer;
  if (const auto request = request_v2_.load()) {
    CuptiV2RequestInfo info{sizeof info};
    request(&buffer.data, &buffer.size, &buffer.max_records, &info);
  } else if (const auto old_request = request_.load()) {
    old_request(&buffer.data, &buffer.size, &buffer.max_records);
  }
  constexpr uint32_t kMayBeRefused = 27;
  if (buffer.data == nullptr && cupti_version() < kMayBeRefused) {
    fmt::print(stderr, "simcuda: a buffer was refused; before CUDA 12.9 CUPTI crashes\n");
    std::abort();
  }
  return buffer;
}

void Recorder::complete_buffer(const Buffer& buffer) {
  if (const auto complete = complete_v2_.load()) {
    std::vector<RecordLayout*> layouts = selected_.layouts();
    CuptiV2CompleteInfo info{sizeof info, static_cast<uint64_t>(::gettid()),
                             reinterpret_cast<void**>(layouts.data()), layouts.size()};
    complete(buffer.data, buffer.size, buffer.used, &info);
  } else if (const auto old_complete = complete_.load()) {
    old_complete(nullptr, 0, buffer.data, buffer.size, buffer.used);
  }
}

void Recorder::hold_buffers() {
  while (held_.size() < switches().hold_buffers) held_.push_back(request_buffer());
}

void Recorder::release_held() {
  for (const Buffer& buffer : held_) {
    if (buffer.data != nullptr) complete_buffer(buffer);
  }
  held_.clear();
}

void Recorder::deliver() {
  complete_buffer(std::exchange(buffer_, Buffer{}));
  asked_.store(false, std::memory_order_relaxed);
}

void Recorder::add_overhead(CUpti_ActivityOverheadKind kind, uint64_t begin, uint64_t end) {
  if (!wants_overhead_.load()) return;
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = kind;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = static_cast<uint32_t>(::getpid());
  record.objectId.pt.threadId = static_cast<uint32_t>(::gettid());
  record.start = begin;
  record.end = end;
  add(PendingRecord::of(record, end)
          .with_time_at(offsetof(CUpti_ActivityOverhead3, start))
          .with_time_at(offsetof(CUpti_ActivityOverhead3, end)));
}

// Layouts only ever grew at their end: a record of an older version is a prefix of today's. Where
// the headers do not tell in which release 12.x a record grew, the shorter form stands for all of
// them.
size_t Recorder::record_size(CUpti_ActivityKind kind) {
  const uint32_t version = cupti_version();
  const bool v12_8 = version >= 26;
  const bool v13_0 = version >= 130000;
  const bool v13_3 = version >= 130300;  // sizes by the headers of 13.3.75
  constexpr size_t kDevice6Bytes = 192, kContext4Bytes = 40;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return v13_3   ? kKernel12Bytes
             : v13_0 ? sizeof(CUpti_ActivityKernel10)
                     : sizeof(CUpti_ActivityKernel9);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return v12_8 ? sizeof(CUpti_ActivityMemcpy6) : sizeof(CUpti_ActivityMemcpy5);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return v13_0 ? sizeof(CUpti_ActivityMemory4) : sizeof(CUpti_ActivityMemory3);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return v12_8 ? sizeof(CUpti_ActivitySynchronization2) : sizeof(CUpti_ActivitySynchronization);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return v12_8 ? sizeof(CUpti_ActivityCudaEvent2) : sizeof(CUpti_ActivityCudaEvent);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return version >= 22   ? sizeof(CUpti_ActivityOverhead3)
             : version >= 20 ? sizeof(CUpti_ActivityOverhead2)
                             : sizeof(CUpti_ActivityOverhead);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return v13_3   ? kDevice6Bytes
             : v13_0 ? sizeof(CUpti_ActivityDevice5)
                     : sizeof(CUpti_ActivityDevice4);
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return v13_3           ? kContext4Bytes
             : v13_0         ? sizeof(CUpti_ActivityContext3)
             : version >= 22 ? sizeof(CUpti_ActivityContext2)
                             : sizeof(CUpti_ActivityContext);
    case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return version >= 21 ? sizeof(CUpti_ActivityGraphTrace2) : sizeof(CUpti_ActivityGraphTrace);
    default: return kind == kUnknownKind ? sizeof(CUpti_ActivityExternalCorrelation) : 0;
  }
}

}  // namespace gpuprof::simcuda
