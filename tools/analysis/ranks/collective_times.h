// SPDX-License-Identifier: Apache-2.0
// Each collective as one thing across its ranks: how long it moved data, who waited for whom, how
// fast it was, and whether other work ran meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/analysis/ranks.h"
#include "tools/analysis/ranks/interconnect.h"
#include "tools/analysis/timeline.h"

namespace gpuprof::analysis {

// Calls of one function on one communicator, of one size class. Times are sums over the calls, in
// us. Calls that share a kernel share its time by their bytes.
struct CollectiveTimesRow {
  std::string function;          // "ncclAllReduce"; "ncclSend, ncclRecv": messages
  uint64_t communicator = 0;     // its identity; 0: not known
  std::string group;             // group_label() of its process group; empty: not known
  std::vector<int32_t> members;  // its ranks in the job, as far as they were recorded
  uint32_t ranks = 0;            // in the communicator
  uint64_t least_bytes = 0;      // of the size class, which ends at four times that; 0: below 1 KiB
  uint64_t calls = 0;            // a collective of n ranks is one call, a message, too
  uint64_t matched = 0;          // of them: recorded on all their ranks. What follows is of these:
  uint64_t bytes = 0;            // S of bus_bandwidth.h
  double transfer_us = 0;        // end less latest start
  uint64_t by_copies = 0;        // of the matched: copy engines did it on some rank
  double waiting_us = 0;         // latest start less own start, mean over the ranks; of the others
  double between_us = 0;         // of those by copies: between a rank's pieces of one call, mean
                                 // over the ranks; whether it waits then is not known
  double exposed_us = 0;         // the kernel ran and no computing did, mean over the ranks
  double overlapped_us = 0;      // both ran
  double algorithm_gbs = 0;      // 1e9 bytes a second; 0: no time
  double bus_gbs = 0;
  LinkPeak peak;  // of what its ranks are connected by; not known where not all ranks are
};

// "4 ranks: 0-3", "mesh_dp, 2 ranks: 0, 2", "256 ranks"; "64 KiB to 256 KiB".
std::string members_text(const CollectiveTimesRow& row);
std::string size_text(const CollectiveTimesRow& row);

// Messages from one rank to another, in the job's count; or from one host to another.
struct LinkRow {
  std::string from, to;
  uint64_t messages = 0, bytes = 0;
  double transfer_us = 0;
  double gbs() const {
    return transfer_us > 0 ? static_cast<double>(bytes) / transfer_us / 1e3 : 0;
  }
};

// Rows wait for columns. Ranks; where they are more than kMostCells, hosts or blocks of ranks. What
// a rank with several GPUs waits in a collective is the mean of those in it.
struct RankMatrix {
  static constexpr size_t kMostCells = 64;  // a side
  std::vector<std::string> names;
  std::vector<std::vector<double>> waits_us;  // [waiting][last to come]
};

struct CollectiveTimes {
  std::vector<CollectiveTimesRow> rows;  // most transfer and waiting first
  std::vector<LinkRow> links;            // between ranks, fastest first
  std::vector<LinkRow> host_links;       // between hosts, if there are several
  RankMatrix waits;                      // empty: nobody waited for a known one
  uint64_t calls = 0, matched = 0;       // sums of the rows'
  uint64_t different = 0;  // calls whose ranks named another function, or another size
};

// One call on one rank: what its rows' sums are made of.
struct CollectiveCall {
  uint32_t timeline;   // in the order in which add_window() was given them, from 0
  uint32_t event;      // in Process::events: the call, or its kernel in a trace without such calls
  int64_t begin, end;  // of its kernels, ns since the Unix epoch
  bool matched = false;             // recorded on all its ranks, in some rank's steps. Then:
  double transfer_us = 0;           // of the collective
  std::optional<double> wait_us{};  // of this rank: until the last one had come; nothing: not known
  double exposed_us = 0, overlapped_us = 0;  // of this rank
};

// Sums over windows.
class CollectiveTimesMaker {
 public:
  // `calls`: gets each call, in no order; null: they are not kept.
  explicit CollectiveTimesMaker(std::vector<CollectiveCall>* calls = nullptr) : calls_(calls) {}
  // All calls that began in some rank's steps. `comparison`: of the same timelines; it joins the
  // calls of dumps that do not name communicators.
  void add_window(std::span<const Timeline> timelines, const RankComparison& comparison);
  CollectiveTimes take();

 private:
  using RowKey = std::tuple<uint64_t, uint32_t, std::string, uint64_t>;  // of a row's first fields
  using Ranks = std::pair<int32_t, int32_t>;
  struct Part;
  struct Gathered;
  void gather(const Timeline& timeline, uint32_t index, const RankComparison& comparison,
              Gathered& out) const;
  void add_call(std::span<const Part> parts, size_t timelines);
  void add_waits(std::span<const Part> parts, const Part& last, std::span<const double> waited);
  RankMatrix matrix() const;

  std::vector<CollectiveCall>* const calls_;
  uint32_t timelines_ = 0;  // those of windows before
  std::map<RowKey, CollectiveTimesRow> rows_;
  std::map<RowKey, std::set<int32_t>> members_;
  std::map<Ranks, double> waits_;  // us, by who waits and who came last
  std::map<Ranks, LinkRow> links_;
  std::map<int32_t, std::string> hosts_;  // of ranks
  Interconnect interconnect_;
  CollectiveTimes out_;
};

}  // namespace gpuprof::analysis
