// SPDX-License-Identifier: Apache-2.0
// Where rows go: directories by job, run and attempt, as Hive names them, and one for each export.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "formats/trace/trace.h"

namespace gpuprof::parquet_export {

// "job=5/run=sweep/attempt=0" of a process; what is not known is Hive's null. Bytes that a path
// cannot have are as Hive escapes them.
std::string partition_of(const Process& process);

// "part=0123456789abcdef": the same for the same processes, in any order.
std::string part_of(std::span<const int64_t> processes);

// The processes of a partition that `folder` has, with the number of records of each. Throws
// Failure for a file that cannot be read.
std::map<int64_t, int64_t> exported_processes(const std::string& folder,
                                              const std::string& partition);

// While it lives, no other export adds processes to this partition of `folder`; it waits for one
// that does. Where the file system has no such locks, a warning says so. Makes the directory that
// it locks. Throws Failure.
class PartitionLock {
 public:
  PartitionLock(const std::string& folder, const std::string& partition);
  ~PartitionLock();
  PartitionLock(PartitionLock&& other) noexcept : directory_(std::exchange(other.directory_, -1)) {}
  PartitionLock(const PartitionLock&) = delete;
  PartitionLock& operator=(const PartitionLock&) = delete;

 private:
  int directory_;
};

// Makes folder/path, one directory after the other. Throws Failure.
void make_folders(const std::string& folder, const std::string& path);

}  // namespace gpuprof::parquet_export
