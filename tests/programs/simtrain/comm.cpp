// SPDX-License-Identifier: Apache-2.0
// The trainer's communicator: rank 0 makes the id and leaves it in a file for the others.
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/programs/simtrain/trainer.h"

namespace gpuprof::simtrain {
namespace {

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", what, ncclGetErrorString(result)));
}

void write_id(const std::string& path, const ncclUniqueId& id) {
  const std::string part = path + ".part";
  std::ofstream(part, std::ios::binary).write(id.internal, sizeof id.internal);
  if (std::rename(part.c_str(), path.c_str()) != 0)
    throw std::runtime_error("cannot write " + path);
}

ncclUniqueId read_id(const std::string& path) {
  ncclUniqueId id{};
  for (int tries = 0; tries < 6000; ++tries) {
    std::ifstream file(path, std::ios::binary);
    if (file.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("rank 0 wrote no " + path);
}

}  // namespace

void Trainer::comm_init() {
  if (options_.comm_mb <= 0) return;
  const char* path = std::getenv("SIMTRAIN_ID_FILE");
  ncclUniqueId id{};
  if (options_.rank == 0) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    if (path != nullptr) write_id(path, id);
  } else if (path != nullptr) {
    id = read_id(path);
  } else {
    throw std::runtime_error("RANK is set but SIMTRAIN_ID_FILE is not; use --ranks N");
  }
  check(ncclCommInitRank(&comm_handle_, options_.ranks, id, options_.rank), "ncclCommInitRank");
}

void Trainer::comm_destroy() {
  if (comm_handle_ != nullptr) check(ncclCommDestroy(comm_handle_), "ncclCommDestroy");
  comm_handle_ = nullptr;
}

void Trainer::all_reduce(float* data, size_t count, cudaStream_t stream) {
  if (options_.gathers) {
    const size_t own = count / static_cast<size_t>(options_.ranks);
    const float* const from = data + own * static_cast<size_t>(options_.rank);
    return check(ncclAllGather(from, data, own, ncclFloat, comm_handle_, stream), "ncclAllGather");
  }
  check(ncclAllReduce(data, data, count, ncclFloat, ncclSum, comm_handle_, stream),
        "ncclAllReduce");
}

}  // namespace gpuprof::simtrain
