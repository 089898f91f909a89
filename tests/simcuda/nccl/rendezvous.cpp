// SPDX-License-Identifier: Apache-2.0
#include "tests/simcuda/nccl/rendezvous.h"

#include <fmt/format.h>

#include <boost/interprocess/shared_memory_object.hpp>

namespace gpuprof::simcuda {

namespace ipc = boost::interprocess;

std::shared_ptr<Rendezvous> Rendezvous::open(const std::string& name, int ranks) {
  try {
    ipc::permissions permissions(0600);
    ipc::shared_memory_object memory(ipc::open_or_create, name.c_str(), ipc::read_write,
                                     permissions);
    memory.truncate(sizeof(SharedRegion));
    std::shared_ptr<Rendezvous> result(new Rendezvous(name, ranks));
    ipc::mapped_region(memory, ipc::read_write, 0, sizeof(SharedRegion)).swap(result->memory_);
    return result;
  } catch (const ipc::interprocess_exception& e) {
    fmt::print(stderr, "simcuda: nccl: cannot open the shared memory {}: {}\n", name, e.what());
    return nullptr;
  }
}

void Rendezvous::join() {
  if (region()->joined.fetch_add(1) + 1 == static_cast<uint32_t>(ranks_)) {
    ipc::shared_memory_object::remove(name_.c_str());
  }
}

void Rendezvous::abandon() { ipc::shared_memory_object::remove(name_.c_str()); }

bool Rendezvous::complete() const { return joined() >= static_cast<uint32_t>(ranks_); }

}  // namespace gpuprof::simcuda
