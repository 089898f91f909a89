// SPDX-License-Identifier: Apache-2.0
// When a collective's kernel ends: when all ranks have come, plus the transfer, plus a jitter.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/simcuda/core/clock.h"
#include "tests/simcuda/core/patient_wait.h"
#include "tests/simcuda/nccl/comm.h"
#include "tests/simcuda/nccl/mismatch.h"
#include "tests/simcuda/nccl/payload.h"

namespace gpuprof::simcuda {
namespace {

// Ranks leave a collective one after the other, as their last data comes: at most so much later
// than the first could.
uint64_t leaving_ns() {
  static const uint64_t value = [] {
    constexpr double kDefault = 2;
    const char* const text = std::getenv("SIMCUDA_NCCL_LEAVING_US");
    const double us = text == nullptr ? kDefault : std::strtod(text, nullptr);
    return static_cast<uint64_t>(std::max(0.0, us) * 1000);
  }();
  return value;
}

class FusedGate final : public Gate {
 public:
  // Takes the work's place in the communicator's order.
  explicit FusedGate(const FusedWork& work) : comm_(work.comm) {
    index_ = comm_->enqueued++;
    for (const CollectiveCall& call : work.calls) {
      if (is_message(call.code)) {
        add_message(call);
      } else {
        has_collective_ = true;
        collective_ns_ += work.only_meets ? 0 : transfer_ns(call, comm_->ranks);
      }
    }
    has_collective_ = has_collective_ || work.only_meets;
    if (has_collective_) collective_ = comm_->collectives++;
    calls_ = work.calls;
    words_ = words_of(calls_).packed();
    note_waiting_work();
  }

  bool resolve(uint64_t* start, uint64_t* end) override {
    if (comm_->resolved.load() != index_) return false;
    *start = std::max(*start, comm_->last_end);
    if (!published_) publish(*start);
    uint64_t finish = 0;
    const int missing = comm_->aborted.load() ? -1 : compute_end(&finish);
    if (missing >= 0 && !timed_out(missing)) return false;
    if (missing < 0 && !comm_->aborted.load()) take();
    *start = start_;
    *end = std::max(finish, start_ + 1);
    comm_->last_end = *end;
    comm_->resolved.fetch_add(1);
    note_finished_work();
    return true;
  }

 private:
  struct Message {
    int from;
    int to;
    uint64_t sequence;
    uint64_t ns;
    uint64_t words;
  };

  void take() {
    if (has_collective_ && !wrong_) take_payloads(calls_, *comm_, collective_);
    if (wrong_) spoil_payloads(calls_, *comm_);
  }
  // False: the operation waits for ever.
  bool agrees(uint64_t own, uint64_t other) {
    const Agreement found = compare(own, other);
    wrong_ = wrong_ || found == Agreement::wrong_values;
    return found != Agreement::hangs;
  }

  void add_message(const CollectiveCall& call) {
    const bool send = call.code == OpCode::kSend;
    const auto peer = static_cast<size_t>(call.peer);
    const uint64_t sequence = send ? comm_->sent[peer]++ : comm_->received[peer]++;
    messages_.push_back(Message{send ? comm_->rank : call.peer, send ? call.peer : comm_->rank,
                                sequence, transfer_ns(call, comm_->ranks),
                                words_of_message(call).packed()});
    sends_.push_back(send);
  }

  void publish(uint64_t start) {
    published_ = true;
    start_ = start;
    waiting_since_ = now_ns();
    Rendezvous& meet = *comm_->rendezvous;
    if (has_collective_) {
      put_payloads(calls_, *comm_, collective_);
      meet.collective(collective_, comm_->rank).put(collective_, start, words_);
    }
    for (size_t i = 0; i < messages_.size(); ++i) {
      const Message& m = messages_[i];
      const Side side = sends_[i] ? Side::kSender : Side::kReceiver;
      meet.message(m.from, m.to, side, m.sequence).put(m.sequence, start, m.words);
    }
  }

  // The rank that has not come yet, or that called something else; or -1 with the common end in
  // `*finish`.
  int compute_end(uint64_t* finish) {
    Rendezvous& meet = *comm_->rendezvous;
    uint64_t latest = 0;
    for (int rank = 0; has_collective_ && rank < comm_->ranks; ++rank) {
      uint64_t start = 0, words = 0;
      if (!meet.collective(collective_, rank).get(collective_, &start, &words)) return rank;
      if (!agrees(words_, words)) return rank;
      latest = std::max(latest, start);
    }
    if (has_collective_) *finish = latest + collective_ns_;
    for (const Message& m : messages_) {
      uint64_t times[2] = {}, words = 0;
      for (const Side side : {Side::kSender, Side::kReceiver}) {
        const int rank = side == Side::kSender ? m.from : m.to;
        uint64_t* const time = &times[side == Side::kReceiver];
        if (!meet.message(m.from, m.to, side, m.sequence).get(m.sequence, time, &words))
          return rank;
        if (!agrees(m.words, words)) return rank;
      }
      *finish = std::max(*finish, std::max(times[0], times[1]) + m.ns);
    }
    *finish += mix64(comm_->seed ^ comm_->hash ^ index_ << 8 ^ static_cast<uint64_t>(comm_->rank)) %
               (leaving_ns() + 1);
    return -1;
  }

  bool timed_out(int missing) {
    const double waited = static_cast<double>(now_ns() - waiting_since_) / 1e9;
    if (waited < timeout_seconds()) return false;
    fmt::print(stderr,
               "simcuda: nccl: rank {} of {} waited {:.0f} s for rank {} in operation {} of its "
               "communicator\n",
               comm_->rank, comm_->ranks, waited, missing, index_);
    comm_->async_error.store(ncclSystemError);
    return true;
  }

  const std::shared_ptr<CommState> comm_;
  uint64_t index_ = 0;
  bool has_collective_ = false;
  uint64_t collective_ = 0;
  uint64_t collective_ns_ = 0;
  std::vector<CollectiveCall> calls_;
  uint64_t words_ = 0;  // of its collectives
  bool wrong_ = false;  // some rank called something else, and all end
  std::vector<Message> messages_;
  std::vector<bool> sends_;
  bool published_ = false;
  uint64_t start_ = 0;
  uint64_t waiting_since_ = 0;
};

class FusedGateFactory final : public GateFactory {
 public:
  explicit FusedGateFactory(FusedWork work) : work_(std::move(work)) {}
  std::shared_ptr<Gate> make() override { return std::make_shared<FusedGate>(work_); }

 private:
  const FusedWork work_;
};

// Resolves while anything waits. Never ends; sleeps when there is nothing to do.
class ProgressThread {
 public:
  static ProgressThread& instance() {
    static ProgressThread& thread = *new ProgressThread();
    return thread;
  }
  void add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!started_) std::thread([this] { run(); }).detach();
    started_ = true;
    if (++waiting_ == 1) wake_.notify_one();
  }
  void remove() {
    const std::lock_guard<std::mutex> lock(mutex_);
    --waiting_;
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "simnccl");
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wait_until_done(wake_, lock, [this] { return waiting_ > 0; });
      }
      sim_core()->progress();
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool started_ = false;
  uint64_t waiting_ = 0;
};

}  // namespace

std::shared_ptr<GateFactory> make_gate_factory(const FusedWork& work) {
  return std::make_shared<FusedGateFactory>(work);
}

double timeout_seconds() {
  static const double value = [] {
    const char* text = std::getenv("SIMCUDA_NCCL_TIMEOUT_S");
    const double number = text == nullptr ? 0 : std::strtod(text, nullptr);
    return number > 0 ? number : 60.0;
  }();
  return value;
}

void note_waiting_work() { ProgressThread::instance().add(); }
void note_finished_work() { ProgressThread::instance().remove(); }

}  // namespace gpuprof::simcuda
