// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/unit/support.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/simcuda/core/simcuda.h"

namespace gpuprof::simcuda::testing {
namespace {

// Sizes of the records that the tests ask for.
size_t record_bytes(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
    case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
    default: return sizeof(CUpti_ActivityExternalCorrelation);
  }
}

// Removed as the process ends that made them; its ranks are forks of it.
struct MadeDirectories {
  const pid_t owner = getpid();
  std::vector<std::string> names;

  ~MadeDirectories() {
    std::error_code ignored;
    if (owner != getpid()) return;
    for (const std::string& name : names) std::filesystem::remove_all(name, ignored);
    // A simulator that nobody has called yet makes its folder as the process ends.
    unsetenv("SIMCUDA_TRUTH");
  }
};

// Before any test: a truth log, whatever the test does first.
const bool truth_set = [] {
  if (!getenv("SIMCUDA_TRUTH")) setenv("SIMCUDA_TRUTH", make_directory().c_str(), 0);
  return true;
}();

}  // namespace

std::string make_directory() {
  static MadeDirectories made;
  char name[] = "/tmp/simcuda_test.XXXXXX";
  if (mkdtemp(name) == nullptr) return "/tmp";
  return made.names.emplace_back(name);
}

std::vector<Json> truth_in(const std::string& directory) {
  std::vector<Json> lines;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) lines.push_back(Json::parse(line));
    }
  }
  return lines;
}

std::vector<Json> truth() {
  std::vector<Json> lines;
  std::ifstream file(std::string(getenv("SIMCUDA_TRUTH")) + "/truth_" + std::to_string(getpid()) +
                     ".jsonl");
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(Json::parse(line));
  }
  return lines;
}

std::vector<Json> select(const std::vector<Json>& lines, const std::string& kind,
                         const std::string& key, const Json& value) {
  std::vector<Json> out;
  for (const Json& line : lines) {
    if (line["t"] == kind && line.value(key, Json()) == value) out.push_back(line);
  }
  return out;
}

uint64_t begin_of(const Json& line) { return line.at("begin").get<uint64_t>(); }
uint64_t end_of(const Json& line) { return line.at("end").get<uint64_t>(); }

void launch(const char* name, uint64_t ns, cudaStream_t stream) {
  simcuda_set_next_kernel_ns(ns);
  ASSERT_EQ(cudaLaunchKernel(simcuda_register_kernel(name), dim3(4), dim3(64), nullptr, 0, stream),
            cudaSuccess);
}

Json kernel(const char* name) {
  const auto found = select(truth(), "gpu", "name", name);
  EXPECT_EQ(found.size(), 1u) << name;
  return found.empty() ? Json{{"begin", 0}, {"end", 0}} : found.front();
}

Streams::Streams(int count, unsigned flags) : streams_(static_cast<size_t>(count)) {
  for (cudaStream_t& stream : streams_) {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  }
}

Streams::~Streams() {
  for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
}

int start_child(const std::string& name, const Environment& extra) {
  const int pid = fork();
  if (pid != 0) return pid;
  for (const auto& [key, value] : extra) setenv(key.c_str(), value.c_str(), 1);
  const std::string filter = "--gtest_filter=" + name;
  execl("/proc/self/exe", "child", filter.c_str(), "--gtest_also_run_disabled_tests",
        static_cast<char*>(nullptr));
  _exit(127);
}

int wait_child(int pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_child(const std::string& name, const Environment& extra) {
  return wait_child(start_child(name, extra));
}

CuptiClient& CuptiClient::instance() {
  static CuptiClient client;
  return client;
}

void CuptiClient::request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = 64 * 1024;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *max_records = 0;
  instance().requesters_.push_back(::gettid());
}

void CuptiClient::complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    instance().received_[record->kind].emplace_back(reinterpret_cast<const char*>(record),
                                                    record_bytes(record->kind));
  }
  std::free(buffer);
}

void CuptiClient::start(const std::vector<CUpti_ActivityKind>& kinds) {
  received_.clear();
  requesters_.clear();
  kinds_ = kinds;
  ASSERT_EQ(cuptiActivityRegisterCallbacks(&request, &complete), CUPTI_SUCCESS);
  for (const CUpti_ActivityKind kind : kinds_) ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
}

void CuptiClient::stop() {
  for (const CUpti_ActivityKind kind : kinds_) EXPECT_EQ(cuptiActivityDisable(kind), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), CUPTI_SUCCESS);
}

}  // namespace gpuprof::simcuda::testing
