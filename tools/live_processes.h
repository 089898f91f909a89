// SPDX-License-Identifier: Apache-2.0
// The profiled processes that are running on this machine, as their rings show them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/core/ring_file.h"
#include "formats/core/trigger/live_state.h"

namespace gpuprof {

class LiveProcess {
 public:
  // Maps the ring for reading. Null when it is no ring of a process that runs here as this user, or
  // that of a data loader's worker.
  static std::unique_ptr<LiveProcess> open(const std::string& ring);
  ~LiveProcess();
  LiveProcess(const LiveProcess&) = delete;
  LiveProcess& operator=(const LiveProcess&) = delete;

  const RingHeader& header() const { return *header_; }
  const std::string& ring() const { return ring_; }
  uint32_t pid() const { return header_->process_id; }
  bool is_running() const;
  std::string name() const;  // "rank 3 (pid 1234)"
  // Step boundaries so far. The step in progress is the number of the newest.
  uint64_t boundaries() const;
  // Mean time of the last few steps; 0 when fewer than two boundaries are known.
  double step_seconds() const;

 private:
  LiveProcess(std::string ring, const RingHeader* header, size_t bytes);

  std::string ring_;  // without symbolic links
  const RingHeader* header_;
  size_t bytes_;
};

// An armed process on another machine, or one here whose buffers are in memory, as its file says.
struct RemoteProcess {
  std::string file, host;
  LiveState state{};
  bool alive = false;  // its file was seen to change

  bool read();               // anew; false: it is gone, or no state
  std::string name() const;  // "rank 3 (pid 1234 on node7)"
};

struct LiveRun {
  std::string directory;  // the run's; empty for processes found by pid
  std::vector<std::unique_ptr<LiveProcess>> processes;  // in order of rank, then pid
  std::vector<RemoteProcess> remote;                    // likewise
  size_t elsewhere =
      0;  // links to rings that are not on this machine, and say nothing of their step
  size_t size() const { return processes.size() + remote.size(); }
};

// The newest run with live processes in `directory` or below, of this machine or armed ones of
// others; waits up to three seconds to see whether these live. Other runs that have some are told
// in `note`.
LiveRun find_live_run(const std::string& directory, std::string& note);
// A process and all that descend from it.
LiveRun find_live_processes(uint32_t pid);

}  // namespace gpuprof
