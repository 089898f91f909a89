// SPDX-License-Identifier: Apache-2.0
// Arranging events as slices that viewers accept: on one track slices nest or
// follow each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "formats/trace/trace.h"

namespace gpuprof {

struct Slice {
  EventIndex event;
  int64_t begin, end;
};

// The order that split_tracks() wants: by begin, longer first.
bool earlier(const Slice& a, const Slice& b);

enum class Overlap {
  nest,   // a slice may lie wholly within another (calls of a thread)
  apart,  // slices of a track follow each other (work on a GPU)
};

// Puts slices that come in order of begin (longer first) on as few tracks as
// needed; 0 is the usual one. At most kMaxTracks: past that a slice is cut
// short to fit on the last one. A copy goes on where the original stands.
inline constexpr size_t kMaxTracks = 64;
class TrackSplitter {
 public:
  explicit TrackSplitter(Overlap overlap) : overlap_(overlap) {}
  // The slice's track. Calls `ended(track, time)` for each slice that is over
  // by its begin, on a track in the order in which they end.
  template <typename Ended>
  size_t place(Slice& slice, const Ended& ended);
  // The same for all that are still open.
  template <typename Ended>
  void finish(const Ended& ended);
  size_t tracks() const { return open_.size(); }

 private:
  template <typename Ended>
  void close(size_t track, int64_t time, const Ended& ended) {
    std::vector<int64_t>& open = open_[track];
    for (; !open.empty() && open.back() <= time; open.pop_back()) ended(track, open.back());
  }

  Overlap overlap_;
  std::vector<std::vector<int64_t>> open_{1};  // ends, outermost first
};

// All at once; [0] is the usual track.
std::vector<std::vector<Slice>> split_tracks(std::span<const Slice> slices, Overlap overlap);

// Whether events of a kind are moments, not ranges.
bool is_instant(Kind kind);

// Whether an event can be drawn: GPU work without usable times cannot.
bool drawable(const Shape& shape);

// The collectives that a GPU event belongs to: kernel -> index into
// Process::collective_kernels.
std::map<uint32_t, uint32_t> collectives_by_kernel(const Process& process);

// The highest of a process's native stacks that something has; StackIndex::none: nothing has one.
StackIndex last_stack(const Process& process);

// "rank 3: python train.py (node1)" as far as that is known.
std::string process_title(const Process& process);
// ", times from CUDA events" where GPU times mean something else than CUPTI's: they are longer
// (docs/SETTINGS.md). Else "".
std::string_view gpu_times_note(const Process& process);
// "DataLoader worker 3 of rank 0"
std::string data_worker_title(const Process& process);

// What is known of a process's device; null: nothing.
const dump::Device* device_of(const Process& process, uint32_t device);

// The thread that steps are drawn on: the one whose id is the process's, else
// the first.
uint32_t main_thread(const Process& process);

template <typename Ended>
size_t TrackSplitter::place(Slice& slice, const Ended& ended) {
  size_t track = 0;
  for (; track < open_.size(); ++track) {
    close(track, slice.begin, ended);
    const std::vector<int64_t>& open = open_[track];
    if (open.empty() || (overlap_ == Overlap::nest && slice.end <= open.back())) break;
  }
  if (track == open_.size()) {
    if (open_.size() < kMaxTracks) {
      open_.emplace_back();
    } else {
      --track;
      const int64_t last = open_[track].back();
      if (overlap_ == Overlap::apart) {
        slice.begin = std::max(slice.begin, last);
        slice.end = std::max(slice.begin, slice.end);
        close(track, slice.begin, ended);
      } else {
        slice.end = std::min(slice.end, last);
      }
    }
  }
  open_[track].push_back(slice.end);
  return track;
}

template <typename Ended>
void TrackSplitter::finish(const Ended& ended) {
  for (size_t track = 0; track < open_.size(); ++track) close(track, INT64_MAX, ended);
}

}  // namespace gpuprof
