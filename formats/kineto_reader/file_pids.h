// SPDX-License-Identifier: Apache-2.0
// What a trace file has by process: the order of its events, which tells what may be missing of a
// file that was cut, and a sample of their correlation ids, which tells whose GPU work is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/kineto_reader/block.h"
#include "formats/kineto_reader/file_order.h"

namespace gpuprof::kineto {

// Some of the ids that were added, the same ones of several samples.
class IdSample {
 public:
  void add(uint32_t id);
  size_t common(const IdSample& other) const;

 private:
  uint32_t limit_ = UINT32_MAX;  // larger hashes are not kept
  std::unordered_set<uint32_t> hashes_;
};

class FilePids {
 public:
  // `rows`: of the block, in `all`.
  void add(const Block& block, const std::vector<uint32_t>& rows, const std::vector<Row>& all);
  // By how much events of a process come late (FileOrder::lag()).
  int64_t lag(const Row& row) const;
  // How many of some ids of GPU work are those of calls of a host process.
  size_t common(int64_t gpu, int64_t host) const;

 private:
  struct OfPid {
    FileOrder work, calls;
    IdSample ids_of_work, ids_of_calls;
  };
  std::map<std::pair<int64_t, uint32_t>, OfPid> pids_;  // pid, its text
};

// What a program that merges the files of several ranks makes of a pid: "[TP01] 123", as SGLang's
// ProfileMerger does (python/sglang/srt/utils/profile_merger.py).
class LabelledPids {
 public:
  // The row's pid as a number that no other label has; others stay.
  void read(Row& row, std::string_view pid_text);
  // 1 of "[TP01] 123"; -1: a label of several kinds, as "TP01-PP00", or of none.
  int32_t rank_of(int64_t pid) const;
  // 0: it has none.
  static int64_t label_of(int64_t pid) { return pid < kFirst ? 0 : pid >> 32; }
  static bool is_process(int64_t pid) {
    return pid >= kFirst || (pid >= 0 && pid < Shape::kAbsent);
  }

 private:
  static constexpr int64_t kFirst = int64_t{1} << 52;
  std::map<std::string, int64_t, std::less<>> labels_;  // the pid 0 of each
  std::map<int64_t, int32_t> ranks_;                    // by label
};

}  // namespace gpuprof::kineto
