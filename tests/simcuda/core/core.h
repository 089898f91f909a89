// SPDX-License-Identifier: Apache-2.0
// The simulator's heart: devices, streams, events, graphs and the order of work on them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tests/simcuda/core/memory_map.h"
#include "tests/simcuda/core/objects.h"
#include "tests/simcuda/core/port.h"

namespace gpuprof::simcuda {

class Core final : public SimCore, public OpObserver {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // Never destroyed: calls arrive before constructors and after destructors.
  static Core& instance();

  // What every call into the runtime would return now: no driver, or forked after the driver's
  // start.
  cudaError_t health() const;

  // Wraps at 32 bits; 0 means none and is left out.
  uint32_t next_correlation() {
    const uint32_t id = correlation_.fetch_add(1, std::memory_order_relaxed) + 1;
    return id != 0 ? id : next_correlation();
  }
  CuptiSink* sink() const { return sink_.load(std::memory_order_acquire); }
  bool wanted(int activity_kind) const;
  MemoryMap& memory() { return memory_; }
  Lock lock() { return Lock(mutex_); }

  // All below: the caller holds the lock.

  Device& device(int index);  // creates its context on first use
  bool has_context(int index) const { return devices_[static_cast<size_t>(index)].context_id != 0; }
  // nullptr when `handle` is no stream.
  std::shared_ptr<Stream> stream(cudaStream_t handle, bool per_thread_default);
  // `context_id`: of a green context; 0: the device's own.
  std::shared_ptr<Stream> create_stream(Device& device, unsigned flags, int priority,
                                        uint32_t correlation, uint32_t context_id = 0);
  bool destroy_stream(cudaStream_t handle);

  // Of cuCtxCreate, by their handles.
  std::shared_ptr<Context> create_context(int device);
  std::shared_ptr<Context> context(const void* handle) const;
  std::shared_ptr<Context> context_of(uint32_t id) const;  // null: cuCtxCreate made none such
  bool destroy_context(const void* handle);

  std::shared_ptr<Event> create_event(unsigned flags, int device);
  std::shared_ptr<Event> event(cudaEvent_t handle);
  bool destroy_event(cudaEvent_t handle);

  std::shared_ptr<Graph> create_graph();
  std::shared_ptr<Graph> graph(cudaGraph_t handle);
  const Graph::Node* graph_node(uint64_t id) const;  // of a graph, not of an executable one
  bool destroy_graph(cudaGraph_t handle);
  cudaGraphExec_t add_graph_exec(std::shared_ptr<GraphExec> exec);
  std::shared_ptr<GraphExec> graph_exec(cudaGraphExec_t handle);
  bool destroy_graph_exec(cudaGraphExec_t handle);

  // Puts work into a stream: enqueued, or made a graph node (then nullptr) under capture.
  OpPtr submit(Stream& stream, Work work, uint32_t correlation, const OpPtr& also_after = nullptr);
  // Enqueues at once, whatever the capture state; starts at `earliest` or later. `traced`: CUPTI is
  // to see it.
  OpPtr run(Stream& stream, const Work& work, uint32_t correlation, bool traced, uint64_t earliest,
            const OpPtr& also_after = nullptr);
  // When what is launched now reaches the device.
  static uint64_t arrival();

  void begin_capture(Stream& stream, std::shared_ptr<Graph> graph, cudaStreamCaptureMode mode);
  std::shared_ptr<Capture> end_capture(Stream& stream);
  // Each is cudaSuccess, or the error of a call that a capture forbids, which makes that invalid: a
  // call that is potentially unsafe, work for a stream, a wait for or a query of what is captured.
  cudaError_t refuse_unsafe_call();
  cudaError_t refuse_use(const Stream& stream);
  cudaError_t refuse_wait(const Stream& stream);
  cudaError_t refuse_wait(const Device& device);
  static cudaError_t refuse_wait(const Event& event);
  bool is_implicitly_captured(const Stream& stream, bool invalidate);

  // Makes a node of what a capturing stream was given.
  void add_node(Stream& stream, Graph::Node node);

  OpPtr record_event(Stream& stream, const Event& event, uint32_t correlation);

  void launch_graph(Stream& stream, GraphExec& exec, uint32_t correlation);

  // What a synchronisation of the stream, or of the device, waits for.
  std::vector<OpPtr> tail(const Stream& stream) const;
  std::vector<OpPtr> tail(const Device& device) const;
  bool finished(const std::vector<OpPtr>& ops);

  // Blocks until all `ops` have ended on their device, or so long before; returns that moment.
  // Gives up `lock`.
  uint64_t block_on(Lock lock, std::vector<OpPtr> ops, uint64_t early_ns = 0);

  void report_sync(const SyncInfo& info);
  void report_reset(uint32_t context_id);
  void report_memory(const MemoryInfo& info);
  uint64_t next_event_sync_id() { return ++event_sync_id_; }
  uint64_t next_launch_index() { return launch_index_++; }

  // SimCore
  void start() override;
  bool is_started() const override;
  void attach_cupti(CuptiSink* sink) override { sink_.store(sink, std::memory_order_release); }
  int device_count() override;
  DeviceModel device_model(int device) override;
  int current_device() override { return thread_state().device; }
  uint32_t stream_id(cudaStream_t stream, bool per_thread_default) override;
  std::vector<StreamInfo> live_streams() override;
  uint32_t graph_exec_id(cudaGraphExec_t exec) override;
  CaptureInfo capture_info(cudaStream_t stream, bool per_thread_default) override;
  uint64_t seed() override;
  size_t progress() override;
  cudaError_t launch_external(const ExternalLaunch& launch) override;
  cudaError_t allocate(void** out, size_t bytes) override;
  cudaError_t release(void* pointer) override;
  bool is_known(const void* pointer, size_t bytes) override;
  bool truth_enabled() override;
  void truth_line(std::string_view json) override;

  // OpObserver
  void resolved(const Op& op) override;

 private:
  Core();
  void load_cupti();
  std::shared_ptr<Stream> make_stream(Device& device, uint32_t id, unsigned flags, int priority);
  void announce_stream(const Stream& stream, uint32_t correlation);
  std::vector<OpPtr> ordering(const Stream& stream) const;
  static void set_forked();
  void wait_for_room(Stream& stream);

  std::mutex mutex_;
  std::condition_variable changed_;
  Timeline timeline_;
  MemoryMap memory_;
  std::vector<Device> devices_;
  std::unordered_map<const void*, std::shared_ptr<Stream>> streams_;
  std::unordered_map<const void*, std::shared_ptr<Context>> contexts_;
  std::unordered_map<const void*, std::shared_ptr<Event>> events_;
  std::unordered_map<const void*, std::shared_ptr<Graph>> graphs_;
  std::unordered_map<const void*, std::shared_ptr<GraphExec>> graph_execs_;
  std::vector<std::shared_ptr<Capture>> captures_;  // begun and not ended
  std::atomic<CuptiSink*> sink_{nullptr};
  std::atomic<uint32_t> correlation_{0};
  std::atomic<bool> forked_{false};
  uint32_t event_id_ = 0;
  uint32_t context_id_ = 200;  // after those of devices and of green contexts
  uint32_t graph_id_ = 0;
  uint64_t event_sync_id_ = 0;
  uint64_t capture_id_ = 0;
  uint64_t launch_index_ = 0;
};

}  // namespace gpuprof::simcuda
