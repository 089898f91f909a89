// SPDX-License-Identifier: Apache-2.0
#include "tools/live_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

namespace gpuprof {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kRing = ".gpuprof.ring";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

// The rings that a process has mapped: only a live process has.
std::set<std::string> mapped_rings(uint32_t pid) {
  std::set<std::string> out;
  for (const std::string& line : lines_of(fmt::format("/proc/{}/maps", pid))) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.ends_with(kRing)) out.insert(line.substr(path));
  }
  return out;
}

// Parent of a process: the fourth field of its stat; the second, in brackets, may hold anything.
uint32_t parent_of(const std::string& pid) {
  const std::vector<std::string> stat = lines_of("/proc/" + pid + "/stat");
  if (stat.empty()) return 0;
  const size_t bracket = stat.back().rfind(") ");
  if (bracket == std::string::npos) return 0;
  return static_cast<uint32_t>(std::strtoul(stat.back().c_str() + bracket + 4, nullptr, 10));
}

std::vector<uint32_t> family_of(uint32_t root) {
  std::multimap<uint32_t, uint32_t> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    children.emplace(parent_of(name), static_cast<uint32_t>(std::stoul(name)));
  }
  std::vector<uint32_t> out{root};
  for (size_t i = 0; i < out.size(); ++i) {
    const auto [first, last] = children.equal_range(out[i]);
    for (auto child = first; child != last; ++child) out.push_back(child->second);
  }
  return out;
}

void sort_by_rank(std::vector<std::unique_ptr<LiveProcess>>& processes) {
  std::sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
    return std::pair(a->header().rank, a->pid()) < std::pair(b->header().rank, b->pid());
  });
}

}  // namespace

LiveProcess::LiveProcess(std::string ring, const RingHeader* header, size_t bytes)
    : ring_(std::move(ring)), header_(header), bytes_(bytes) {}

LiveProcess::~LiveProcess() { ::munmap(const_cast<RingHeader*>(header_), bytes_); }

std::unique_ptr<LiveProcess> LiveProcess::open(const std::string& ring) {
  std::error_code error;
  const std::string path = fs::canonical(ring, error);
  if (error) return nullptr;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return nullptr;
  struct stat info {};
  void* memory = MAP_FAILED;
  const bool plausible = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                         static_cast<size_t>(info.st_size) > sizeof(RingHeader);
  const size_t bytes = static_cast<size_t>(info.st_size);
  if (plausible) memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return nullptr;
  const auto* const header = static_cast<const RingHeader*>(memory);
  std::unique_ptr<LiveProcess> out(new LiveProcess(path, header, bytes));
  const uint64_t steps_end = header->steps.offset + header->steps.bytes;
  const bool ours = header->magic == kRingMagic && header->version == kRingVersion &&
                    header->header_bytes >= offsetof(RingHeader, rank) + sizeof header->rank &&
                    header->steps.bytes > 0 && header->steps.offset % 8 == 0 &&
                    steps_end >= header->steps.offset && steps_end <= bytes;
  // Workers of a data loader do as their process does.
  const bool worker = header->header_bytes >=
                          offsetof(RingHeader, parent_process) + sizeof header->parent_process &&
                      header->parent_process != 0;
  return ours && !worker && out->is_running() ? std::move(out) : nullptr;
}

bool LiveProcess::is_running() const { return mapped_rings(pid()).contains(ring_); }

std::string LiveProcess::name() const {
  return header_->rank < 0 ? fmt::format("process {}", pid())
                           : fmt::format("rank {} (pid {})", header_->rank, pid());
}

uint64_t LiveProcess::boundaries() const {
  return header_->steps.used.load(std::memory_order_acquire) / sizeof(uint64_t);
}

double LiveProcess::step_seconds() const {
  constexpr uint64_t kSteps = 8;
  const uint64_t capacity = header_->steps.bytes / sizeof(uint64_t);
  const uint64_t count = boundaries();
  if (count < 2 || header_->ticks_per_second == 0) return 0;
  const uint64_t steps = std::min({kSteps, count - 1, capacity - 1});
  const auto* const slots = reinterpret_cast<const uint64_t*>(
      reinterpret_cast<const uint8_t*>(header_) + header_->steps.offset);
  const uint64_t newest = slots[(count - 1) % capacity];
  const uint64_t oldest = slots[(count - 1 - steps) % capacity];
  return newest > oldest ? static_cast<double>(newest - oldest) / static_cast<double>(steps) /
                               static_cast<double>(header_->ticks_per_second)
                         : 0;
}

bool RemoteProcess::read() {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) return false;
  char text[kLiveStateBytes];
  struct stat info {};
  const bool regular = ::fstat(opened, &info) == 0 && S_ISREG(info.st_mode);  // a pipe would hang
  const ssize_t got = regular ? ::read(opened, text, sizeof text) : -1;
  ::close(opened);
  return got >= 0 && parse_live_state({text, static_cast<size_t>(got)}, state);
}

std::string RemoteProcess::name() const {
  return state.rank < 0 ? fmt::format("process {} on {}", state.process_id, host)
                        : fmt::format("rank {} (pid {} on {})", state.rank, state.process_id, host);
}

namespace {

// Of a file that tells a process's state.
RemoteProcess remote_process(const std::string& state) {
  RemoteProcess out;
  out.file = state;
  const std::string name = fs::path(state).filename();
  out.host = name.substr(0, name.rfind("_r"));
  return out;
}

// Those of a run that are not seen here.
void add_remote(const std::vector<std::string>& files, LiveRun& run) {
  for (const std::string& path : files) {
    const std::string stem = path.substr(0, path.size() - std::string(kLiveStateSuffix).size());
    const std::string ring = stem + std::string(kRing);
    std::error_code error;
    const std::string real = fs::canonical(ring, error);
    const bool here = std::any_of(run.processes.begin(), run.processes.end(),
                                  [&](const auto& each) { return each->ring() == real; });
    if (here) continue;
    RemoteProcess remote = remote_process(path);
    if (!remote.read()) continue;
    if (error && run.elsewhere > 0) --run.elsewhere;  // counted as a link that leads nowhere
    run.remote.push_back(std::move(remote));
  }
  std::sort(run.remote.begin(), run.remote.end(), [](const auto& a, const auto& b) {
    return std::pair(a.state.rank, a.state.process_id) <
           std::pair(b.state.rank, b.state.process_id);
  });
}

// No clocks of other machines are asked: a file that changes is of a live process.
void find_alive(const std::vector<LiveRun*>& runs) {
  constexpr auto kLongest = std::chrono::milliseconds(3 * kLiveStateMs);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  for (bool waits = true; waits && std::chrono::steady_clock::now() < deadline;) {
    waits = false;
    for (LiveRun* const run : runs) {
      for (RemoteProcess& each : run->remote) {
        if (each.alive) continue;
        const uint64_t before = each.state.beat;
        each.alive = each.read() && each.state.beat != before;
        waits = waits || !each.alive;
      }
    }
    if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// What an earlier attempt left, where its rank lives again.
void forget_replaced(LiveRun& run) {
  std::set<int64_t> live;
  for (const auto& each : run.processes) live.insert(each->header().rank);
  for (const RemoteProcess& each : run.remote) {
    if (each.alive) live.insert(each.state.rank);
  }
  std::erase_if(run.remote, [&](const RemoteProcess& each) {
    return !each.alive && each.state.rank >= 0 && live.contains(each.state.rank);
  });
}

bool has_live(const LiveRun& run) {
  return !run.processes.empty() ||
         std::any_of(run.remote.begin(), run.remote.end(), [](auto& each) { return each.alive; });
}

}  // namespace

LiveRun find_live_run(const std::string& directory, std::string& note) {
  std::map<std::string, LiveRun> runs;
  std::map<std::string, std::vector<std::string>> states;
  std::error_code error;
  fs::recursive_directory_iterator at(fs::canonical(directory, error),
                                      fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string path = at->path();
    if (path.ends_with(kLiveStateSuffix)) states[at->path().parent_path()].push_back(path);
    if (!path.ends_with(kRing)) continue;
    LiveRun& run = runs[at->path().parent_path()];
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      ++run.elsewhere;
    } else if (auto process = LiveProcess::open(path)) {
      run.processes.push_back(std::move(process));
    }
  }
  for (const auto& [run, files] : states) add_remote(files, runs[run]);
  std::vector<LiveRun*> all;
  for (auto& [name, run] : runs) all.push_back(&run);
  find_alive(all);
  for (auto& [name, run] : runs) forget_replaced(run);
  std::erase_if(runs, [](const auto& run) { return !has_live(run.second); });
  if (runs.empty()) return {};
  const auto began = [](const LiveRun& run) {
    // Times of different boots or clocks do not meet on one machine.
    return run.processes.empty() ? 0 : run.processes[0]->header().anchors[0].realtime_ns;
  };
  const auto newest = std::max_element(runs.begin(), runs.end(), [&](const auto& a, const auto& b) {
    return began(a.second) < began(b.second);
  });
  if (runs.size() > 1) {
    note = fmt::format("{} runs in {} have live processes; this is for the newest, {}", runs.size(),
                       directory, newest->first);
  }
  LiveRun run = std::move(newest->second);
  run.directory = newest->first;
  sort_by_rank(run.processes);
  return run;
}

namespace {

// A process whose buffers are in memory tells its state in its run's folder, which it has open.
void add_without_ring(uint32_t pid, LiveRun& run) {
  std::set<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid), error)) {
    std::error_code ignored;
    if (fs::is_directory(entry.path(), ignored)) {
      folders.insert(fs::read_symlink(entry.path(), ignored).string());
    }
  }
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string path = entry.path();
      if (!path.ends_with(kLiveStateSuffix)) continue;
      RemoteProcess process = remote_process(path);
      if (!process.read() || process.state.process_id != pid) continue;
      run.remote.push_back(std::move(process));
    }
  }
}

}  // namespace

LiveRun find_live_processes(uint32_t pid) {
  LiveRun run;
  for (const uint32_t member : family_of(pid)) {
    for (const std::string& ring : mapped_rings(member)) {
      auto process = LiveProcess::open(ring);
      if (process && process->pid() == member) run.processes.push_back(std::move(process));
    }
    const bool found = !run.processes.empty() && run.processes.back()->pid() == member;
    if (!found) add_without_ring(member, run);
  }
  find_alive({&run});
  sort_by_rank(run.processes);
  return run;
}

}  // namespace gpuprof
