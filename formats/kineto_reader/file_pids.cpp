// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/file_pids.h"

#include <algorithm>

#include "formats/kineto_reader/numbers.h"

namespace gpuprof::kineto {

void IdSample::add(uint32_t id) {
  constexpr size_t kMost = 256;
  const uint32_t hash = id * 2654435761u;  // no two ids have the same
  if (hash > limit_) return;
  hashes_.insert(hash);
  while (hashes_.size() > kMost) {
    limit_ /= 2;
    std::erase_if(hashes_, [this](uint32_t each) { return each > limit_; });
  }
}

size_t IdSample::common(const IdSample& other) const {
  return static_cast<size_t>(std::count_if(
      hashes_.begin(), hashes_.end(), [&](uint32_t hash) { return other.hashes_.contains(hash); }));
}

void FilePids::add(const Block& block, const std::vector<uint32_t>& rows,
                   const std::vector<Row>& all) {
  std::vector<OfPid*> of_row(rows.size());
  for (const BlockEvent& event : block.events) {
    const Kind kind = block.shapes[number(event.shape)].kind;
    const bool works = is_stream_work(kind);
    if (!works && !is_call_kind(kind)) continue;
    OfPid*& facts = of_row[event.row];
    const Row& row = all[rows[event.row]];
    if (!facts) facts = &pids_[{row.pid, row.pid_text}];
    (works ? facts->work : facts->calls).add(event.begin);
    if (event.correlation)
      (works ? facts->ids_of_work : facts->ids_of_calls).add(event.correlation);
  }
}

int64_t FilePids::lag(const Row& row) const {
  const auto found = pids_.find({row.pid, row.pid_text});
  if (found == pids_.end()) return 0;
  return std::max(found->second.work.lag(), found->second.calls.lag());
}

size_t FilePids::common(int64_t gpu, int64_t host) const {
  const auto work = pids_.find({gpu, 0}), calls = pids_.find({host, 0});
  if (work == pids_.end() || calls == pids_.end()) return 0;
  return work->second.ids_of_work.common(calls->second.ids_of_calls);
}

void LabelledPids::read(Row& row, std::string_view pid_text) {
  const size_t end = pid_text.find("] ");
  if (!pid_text.starts_with('[') || end == std::string_view::npos) return;
  const std::optional<uint64_t> pid = whole(pid_text.substr(end + 2));
  if (!pid || *pid >= Shape::kAbsent) return;
  const std::string_view label = pid_text.substr(1, end - 1);
  const auto [at, fresh] =
      labels_.try_emplace(std::string(label), kFirst + (int64_t(labels_.size() + 1) << 32));
  row.pid = at->second + static_cast<int64_t>(*pid);
  row.pid_text = 0;
  const size_t digits = label.find_first_of("0123456789");
  const std::optional<uint64_t> rank =
      fresh && digits != label.npos ? whole(label.substr(digits)) : std::nullopt;
  constexpr uint64_t kMostRanks = 1 << 24;
  if (rank && *rank < kMostRanks) ranks_[label_of(row.pid)] = static_cast<int32_t>(*rank);
}

int32_t LabelledPids::rank_of(int64_t pid) const {
  const auto found = ranks_.find(label_of(pid));
  return found == ranks_.end() ? -1 : found->second;
}

}  // namespace gpuprof::kineto
