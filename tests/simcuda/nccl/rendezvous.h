// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a communicator meet: a shared memory region named by the communicator's id.
// Every rank publishes when it is ready to start an operation; all compute the same end from that.
#pragma once

#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace gpuprof::simcuda {

constexpr int kMaxRanks = 64;
constexpr uint64_t kCollectiveSlots = 8;
constexpr uint64_t kMessageSlots = 64;
constexpr uint64_t kSplitSlots = 4;
constexpr size_t kPayloadBytes = 4096;  // of a rank, in one operation

// A value that one rank writes once per use of the slot, and others wait for.
class Mailbox {
 public:
  // `what`: of an operation, what it is (CallWords).
  void put(uint64_t sequence, uint64_t value, uint64_t what = 0) {
    value_.store(value, std::memory_order_relaxed);
    what_.store(what, std::memory_order_relaxed);
    written_.store(sequence + 1, std::memory_order_release);
  }
  bool get(uint64_t sequence, uint64_t* value, uint64_t* what = nullptr) const {
    if (written_.load(std::memory_order_acquire) != sequence + 1) return false;
    *value = value_.load(std::memory_order_relaxed);
    if (what) *what = what_.load(std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<uint64_t> written_;
  std::atomic<uint64_t> value_;
  std::atomic<uint64_t> what_;
};

enum class Side : uint8_t { kSender, kReceiver };

// Zero-filled memory is a valid region.
struct SharedRegion {
  std::atomic<uint32_t> joined;
  Mailbox collective[kCollectiveSlots][kMaxRanks];
  Mailbox split[kSplitSlots][kMaxRanks];
  std::byte payload[kCollectiveSlots][kMaxRanks][kPayloadBytes];
  Mailbox messages[kMaxRanks][kMaxRanks][2][kMessageSlots];  // [from][to][side]
};

class Rendezvous {
 public:
  // Opens or creates the region. nullptr, with a line on stderr, when that fails.
  static std::shared_ptr<Rendezvous> open(const std::string& name, int ranks);

  const std::string& name() const { return name_; }

  // Says that one more rank is here; the last one takes the region's name away.
  void join();
  bool complete() const;
  // Takes the region's name away although some never came.
  void abandon();
  uint32_t joined() const { return region()->joined.load(); }

  Mailbox& collective(uint64_t sequence, int rank) {
    return region()->collective[sequence % kCollectiveSlots][rank];
  }
  // Written before the rank's mailbox of that collective, read when all have been.
  std::byte* payload(uint64_t sequence, int rank) {
    return region()->payload[sequence % kCollectiveSlots][rank];
  }
  Mailbox& split(uint64_t sequence, int rank) {
    return region()->split[sequence % kSplitSlots][rank];
  }
  Mailbox& message(int from, int to, Side side, uint64_t sequence) {
    return region()->messages[from][to][static_cast<int>(side)][sequence % kMessageSlots];
  }

 private:
  Rendezvous(std::string name, int ranks) : name_(std::move(name)), ranks_(ranks) {}
  SharedRegion* region() const { return static_cast<SharedRegion*>(memory_.get_address()); }

  const std::string name_;
  const int ranks_;
  boost::interprocess::mapped_region memory_;
};

}  // namespace gpuprof::simcuda
