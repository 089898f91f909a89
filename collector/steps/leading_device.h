// SPDX-License-Identifier: Apache-2.0
// Of several GPUs of one process, the leader is the one whose marks are the process's steps. The
// others are replicas, driven by threads or turns of their own. Their marks would count each
// iteration several times. The first that marks leads. When it has stopped, another one takes the
// lead: others have marked more than kSilence times since, and twice as often as ever between two
// of its marks. Where the GPU of a mark is not known all marks count. No clock, no I/O.
#pragma once

#include <cstdint>

namespace gpuprof {

inline constexpr int32_t kUnknownDevice = -1;

class LeadingDevice {
 public:
  // A mark by this thread, whose current GPU is `device`: whether it counts. `follows_thread`: what
  // the leader's thread marks counts, too, whichever GPU is current then (ranges mark the work of a
  // thread, synchronizations and launches that of a GPU).
  bool leads(uint32_t thread, int32_t device, bool follows_thread);
  // The leader's GPU, where others have marked, too; else kUnknownDevice.
  int32_t among_others() const { return others_ever_ ? device_ : kUnknownDevice; }
  uint32_t thread() const { return thread_; }  // that made the leader's first mark

  static constexpr uint32_t kSilence = 64;

 private:
  void lead(uint32_t thread, int32_t device);

  bool any_ = false, others_ever_ = false;
  uint32_t thread_ = 0;
  int32_t device_ = kUnknownDevice;
  uint32_t others_ = 0;   // marks of others since the leader's last one
  uint32_t longest_ = 0;  // the most of these that ever lay between two of its marks
};

}  // namespace gpuprof
