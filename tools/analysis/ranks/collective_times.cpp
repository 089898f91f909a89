// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/ranks/collective_times.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <string_view>

#include "formats/trace/collective_calls.h"
#include "formats/trace/listing.h"
#include "formats/trace/names.h"
#include "tools/analysis/collective_args.h"
#include "tools/analysis/ranks/bus_bandwidth.h"
#include "tools/analysis/ranks/same_collectives.h"
#include "tools/analysis/ranks/shared_waits.h"
#include "tools/analysis/side_by_side.h"
#include "tools/analysis/walks.h"

namespace gpuprof::analysis {
namespace {

constexpr int32_t kAlone = -2;  // CallName::from of a call that is not to be found on other ranks

bool sends(std::string_view function) { return function == "ncclSend"; }
bool is_message(std::string_view function) { return sends(function) || function == "ncclRecv"; }

// A copy within the rank's own memory, which takes no link.
bool is_to_itself(std::string_view function, const Shape& shape) {
  return is_message(function) && shape.rank != Shape::kAbsent && shape.rank == shape.peer;
}

constexpr uint64_t kLeastClass = 1024, kClassStep = 4;
uint64_t size_class(uint64_t bytes) {
  if (bytes < kLeastClass) return 0;
  uint64_t out = kLeastClass;
  while (bytes / kClassStep >= out) out *= kClassStep;
  return out;
}

// When each GPU of a process computed while it communicated. Memory grows with that alone, and not
// with all kernels of a trace.
class Computing {
 public:
  explicit Computing(const Timeline& timeline) {
    const auto communicating = covered(
        timeline, [](const Work& work, uint32_t) { return work.kind == WorkClass::communication; });
    if (communicating.empty()) return;
    measures_ = covered(timeline, [&](const Work& work, uint32_t device) {
      const auto at = communicating.find(device);
      return work.kind == WorkClass::compute && at != communicating.end() &&
             at->second.touches(work.begin, work.end);
    });
  }
  int64_t inside(uint32_t device, int64_t begin, int64_t end) const {
    const auto at = measures_.find(device);
    return at == measures_.end() ? 0 : at->second.inside(begin, end);
  }

 private:
  using Measures = std::map<uint32_t, Measure>;  // by device

  template <typename Chosen>
  static Measures covered(const Timeline& timeline, const Chosen& chosen) {
    std::map<uint32_t, Intervals> of_devices;
    each_work(timeline, [&](const Work& work) {
      const uint32_t device = timeline.streams[work.stream].name.device;
      if (chosen(work, device)) of_devices[device].push_back({work.begin, work.end});
    });
    Measures out;
    for (auto& [device, any] : of_devices) out.emplace(device, Measure(cover(std::move(any))));
    return out;
  }

  Measures measures_;
};

// "ncclSend, ncclRecv" for either.
std::string row_name(std::string_view function) {
  return is_message(function) ? "ncclSend, ncclRecv" : std::string(plain_collective(function));
}

double microseconds(double ns) { return ns / 1000; }

}  // namespace

std::string members_text(const CollectiveTimesRow& row) {
  constexpr size_t kMostRanges = 4;
  const size_t count = row.ranks ? row.ranks : row.members.size();
  std::string out = row.group.empty() ? row.group : row.group + ", ";
  out += std::to_string(count) + (count == 1 ? " rank" : " ranks");
  const bool whole = row.members.size() == count && row.members.front() >= 0;
  if (!whole || range_count(row.members) > kMostRanges) return out;
  return out + ": " + number_ranges(row.members, kMostRanges);
}

std::string size_text(const CollectiveTimesRow& row) {
  const auto text = [](uint64_t bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
    return std::to_string(bytes) + " " + kUnits[unit];
  };
  if (row.least_bytes == 0) return "below " + text(kLeastClass);
  return text(row.least_bytes) + " to " + text(row.least_bytes * kClassStep);
}

// One call on one rank.
struct CollectiveTimesMaker::Part {
  CallName name;
  std::string_view function;  // plain_collective()
  std::string_view group;     // group_label()
  uint64_t bytes;             // S
  bool sized;                 // S is known
  bool uneven;                // other ranks' S may differ
  uint32_t ranks;             // of the communicator; 0: not known
  int32_t rank;               // in the job
  uint32_t timeline, event;   // as CollectiveCall has them; timeline: in the window
  bool in_steps;
  int64_t begin, end;          // of its kernels
  double share;                // of their time
  double link_share;           // of a message: among those with the same peer in its kernel
  double running, overlapped;  // ns of them that are its own; with computing meanwhile
  bool by_copies;
  double between;   // ns without any of them
  uint32_t device;  // of its first kernel
  // What add_call() finds: how long it waits, ns, for which rank, and how many GPUs of its own rank
  // do.
  mutable double waited = 0;
  mutable int32_t awaited = -1;
  mutable double gpus = 1;
  int64_t length() const { return end - begin; }
};

struct CollectiveTimesMaker::Gathered {
  std::vector<Part> parts;
  std::deque<std::string> functions;  // and groups that the trace does not keep

  static void add_up_waits(std::span<const Part> parts, std::map<Ranks, double>& out);
};

namespace {

// What a kernel does for several calls.
struct Load {
  double sent = 0, received = 0, together = 0;
  double& of(std::string_view function) {
    return sends(function) ? sent : function == "ncclRecv" ? received : together;
  }
};

double load_of(std::string_view function, uint64_t bytes, uint32_t ranks) {
  return std::max(1.0, static_cast<double>(bytes) * bus_factor(function, ranks));
}

// Of parts, one at least.
template <typename Parts>
uint64_t mean_bytes(const Parts& parts) {
  double sum = 0;
  for (const auto& part : parts) sum += static_cast<double>(part.bytes);
  return static_cast<uint64_t>(sum / static_cast<double>(parts.size()));
}

struct Piece {
  uint32_t call, kernel;
};

}  // namespace

void CollectiveTimesMaker::gather(const Timeline& timeline, uint32_t index,
                                  const RankComparison& comparison, Gathered& out) const {
  const Process& process = *timeline.process;
  if (timeline.steps.empty()) return;
  const int64_t first = timeline.steps.front().begin, last = timeline.steps.back().end;
  std::optional<Computing> computing;  // of a trace with collectives
  const auto inside = [&](int64_t time) { return time >= first && time < last; };
  const auto joint_of = [&](uint32_t kernel) -> const uint32_t* {
    if (index >= comparison.joint_of.size()) return nullptr;
    const auto at = comparison.joint_of[index].find(kernel);
    return at == comparison.joint_of[index].end() ? nullptr : &at->second;
  };
  const auto device_of = [&](uint32_t kernel) {
    for (const Stream& stream : timeline.streams) {
      if (kernel >= stream.first_event && kernel < stream.end_event) return stream.name.device;
    }
    return 0u;
  };
  const EventTable& events = timeline.events();
  Intervals pieces;  // of a call
  const auto add_time = [&](Part& part, uint32_t kernel, double share) {
    if (!computing) computing.emplace(timeline);
    if (pieces.empty()) part.device = device_of(kernel);
    const int64_t begin = events.begin_of(kernel), end = events.end_of(kernel);
    pieces.push_back({begin, end});
    part.by_copies |= timeline.shape(kernel).kind == Kind::gpu_copy;
    part.begin = std::min(part.begin, begin), part.end = std::max(part.end, end);
    part.running += static_cast<double>(end - begin) * share;
    part.overlapped +=
        static_cast<double>(computing->inside(device_of(kernel), begin, end)) * share;
  };
  const bool named = comparison.named || comparison.joint_of.size() < 2;

  std::map<uint32_t, Load> loads;                          // by kernel
  std::map<std::pair<uint32_t, uint32_t>, Load> of_links;  // by kernel and peer
  const auto call_of = [&](uint32_t call) {
    const Shape& shape = timeline.shape(call);
    Part part{};
    part.function = plain_collective(timeline.trace->text(shape.name));
    part.group = group_label(timeline.trace->text(shape.group),
                             timeline.trace->text(shape.group_description));
    part.ranks = shape.rank_count;
    part.rank = process.header.rank();
    const auto own = collective_own_bytes(shape, process.extras[events.extra_of(call)]);
    part.bytes = collective_bytes(part.function, own.value_or(0), part.ranks);
    part.sized = own && (part.ranks || !counts_each_rank(part.function));
    part.uneven = is_uneven(part.function);
    part.timeline = index, part.event = call;
    part.in_steps = inside(events.begin_of(call));
    part.begin = INT64_MAX, part.end = INT64_MIN;
    return part;
  };
  for (const CollectiveKernel& pair : process.collective_kernels) {
    const Shape& shape = timeline.shape(number(pair.collective));
    const Part part = call_of(number(pair.collective));
    if (is_to_itself(part.function, shape)) continue;
    const double load = load_of(part.function, part.bytes, part.ranks);
    loads[number(pair.kernel)].of(part.function) += load;
    of_links[{number(pair.kernel), shape.peer}].of(part.function) += load;
  }
  std::map<std::tuple<uint32_t, int32_t, int32_t>, uint32_t> places;  // in a kernel
  const auto name = [&](uint32_t call, uint32_t kernel) -> CallName {
    const auto found = named ? name_of_call(*timeline.trace, process, call) : std::nullopt;
    if (found) return *found;
    const uint32_t* const joint = joint_of(kernel);
    if (!joint) return {0, kAlone, static_cast<int32_t>(index), call};
    const Shape& shape = timeline.shape(call);
    const std::string_view function = timeline.trace->text(shape.name);
    int32_t from = -1, to = -1;
    if (is_message(function) && shape.rank != Shape::kAbsent && shape.peer != Shape::kAbsent) {
      from = static_cast<int32_t>(sends(function) ? shape.rank : shape.peer);
      to = static_cast<int32_t>(sends(function) ? shape.peer : shape.rank);
    }
    return {0, from, to, uint64_t{*joint} << 32 | places[{kernel, from, to}]++};
  };
  const auto& pairs = process.collective_kernels;
  for (size_t i = 0; i < pairs.size();) {
    const uint32_t call = number(pairs[i].collective);
    Part part = call_of(call);
    part.name = name(call, number(pairs[i].kernel));
    size_t kernels = 0;
    pieces.clear();
    for (; i < pairs.size() && number(pairs[i].collective) == call; ++i, ++kernels) {
      const uint32_t kernel = number(pairs[i].kernel);
      const Shape& shape = timeline.shape(call);
      const double load =
          is_to_itself(part.function, shape) ? 0 : load_of(part.function, part.bytes, part.ranks);
      const double share = load / std::max(1.0, loads[kernel].of(part.function));
      part.share += share;
      part.link_share += load / std::max(1.0, of_links[{kernel, shape.peer}].of(part.function));
      add_time(part, kernel, share);
    }
    part.share /= static_cast<double>(kernels);
    part.link_share /= static_cast<double>(kernels);
    part.between = static_cast<double>(part.length() - total(cover(pieces))) * part.share;
    out.parts.push_back(part);
  }
  if (!pairs.empty()) return;
  // Of a trace that has no calls of NCCL's: what its kernels say.
  each_work(timeline, [&](const Work& work) {
    if (work.kind != WorkClass::communication) return;
    const auto args = collective_in(
        timeline.trace->text(process.extras[process.events.extra_of(work.event)].args));
    if (!args) return;
    const uint32_t* const joint = joint_of(work.event);
    Part part{};
    part.function = out.functions.emplace_back(plain_collective(args->function));
    part.group = out.functions.emplace_back(args->label);
    part.ranks = args->group_size;
    part.rank = process.header.rank();
    part.bytes = collective_bytes(part.function, args->bytes.value_or(0), part.ranks);
    part.sized = args->bytes && (part.ranks || !counts_each_rank(part.function));
    part.uneven = args->uneven;
    part.timeline = index, part.event = work.event;
    part.in_steps = inside(timeline.issued_at(work));
    part.begin = work.begin, part.end = work.end, part.share = part.link_share = 1;
    part.name = joint ? CallName{std::hash<std::string>()(args->group), -1, -1, *joint}
                      : CallName{0, kAlone, static_cast<int32_t>(index), work.event};
    if (is_message(part.function)) part.name.communicator = 0;
    pieces.clear();
    add_time(part, work.event, 1);
    out.parts.push_back(part);
  });
}

// A GPU that waits in several at a time waits once.
void CollectiveTimesMaker::Gathered::add_up_waits(std::span<const Part> parts,
                                                  std::map<Ranks, double>& out) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Wait>> of_gpus;  // by timeline and device
  std::map<uint32_t, int32_t> ranks;                                   // by timeline
  for (const Part& part : parts) {
    if (part.awaited < 0) continue;
    ranks[part.timeline] = part.rank;
    of_gpus[{part.timeline, part.device}].push_back(
        {{part.begin, part.begin + static_cast<int64_t>(part.waited)},
         static_cast<uint32_t>(part.awaited),
         1 / part.gpus});
  }
  for (const auto& [gpu, waits] : of_gpus) {
    for (const auto& [time, last, share] : shares_of(waits)) {
      out[{ranks[gpu.first], static_cast<int32_t>(last)}] +=
          microseconds(share * static_cast<double>(time.length()));
    }
  }
}

void CollectiveTimesMaker::add_window(std::span<const Timeline> timelines,
                                      const RankComparison& comparison) {
  std::vector<Gathered> gathered(timelines.size());
  std::vector<std::function<void()>> tasks;
  for (uint32_t i = 0; i < timelines.size(); ++i) {
    hosts_.emplace(timelines[i].process->header.rank(), timelines[i].process->header.host());
    interconnect_.add(*timelines[i].process);
    tasks.push_back([&, i] { gather(timelines[i], i, comparison, gathered[i]); });
  }
  side_by_side(std::move(tasks));
  std::vector<Part> parts;
  for (Gathered& each : gathered) {
    parts.insert(parts.end(), each.parts.begin(), each.parts.end());
    std::vector<Part>().swap(each.parts);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.name < b.name; });
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end].name == parts[begin].name) ++end;
    const auto call = std::span<const Part>(parts).subspan(begin, end - begin);
    const bool counts = std::any_of(call.begin(), call.end(), [](auto& p) { return p.in_steps; });
    for (const Part& part : call) {
      if (calls_) {
        calls_->push_back({timelines_ + part.timeline, part.event, part.begin, part.end});
      }
    }
    if (counts) add_call(call, timelines.size());
  }
  Gathered::add_up_waits(parts, waits_);
  timelines_ += static_cast<uint32_t>(timelines.size());
}

void CollectiveTimesMaker::add_call(std::span<const Part> parts, size_t timelines) {
  if (!std::all_of(parts.begin(), parts.end(), [](auto& part) { return part.sized; })) return;
  const Part& one = parts.front();
  const bool message = is_message(one.function);
  if (message && one.name.from >= 0 && one.name.from == one.name.to) return;
  const bool uneven =
      std::any_of(parts.begin(), parts.end(), [](auto& part) { return part.uneven; });
  const uint64_t bytes = uneven ? mean_bytes(parts) : one.bytes;
  const RowKey key{one.name.communicator, one.ranks, row_name(one.function), size_class(bytes)};
  CollectiveTimesRow& row = rows_[key];
  ++row.calls;
  if (row.group.empty()) row.group = one.group;
  for (const Part& part : parts) members_[key].insert(part.rank);
  const size_t expected = message ? 2 : one.ranks ? one.ranks : timelines;
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return (uneven || part.bytes == one.bytes) && row_name(part.function) == row_name(one.function);
  });
  if (!alike) ++out_.different;
  if (!alike || parts.size() != expected || one.name.from == kAlone) return;
  ++row.matched;
  row.bytes += bytes;
  // Each rank's own clock says how long it was there; only where ranks leave apart, clocks meet.
  const bool together = leaves_together(one.function);
  const auto shortest = std::min_element(parts.begin(), parts.end(),
                                         [](auto& a, auto& b) { return a.length() < b.length(); });
  const auto latest = std::max_element(parts.begin(), parts.end(),
                                       [](auto& a, auto& b) { return a.begin < b.begin; });
  int64_t end = INT64_MIN;
  double share = 0;
  for (const Part& part : parts) {
    end = std::max(end, part.end);
    if (!message || sends(part.function)) share = part.share;
  }
  const int64_t transfer = together ? shortest->length() : end - latest->begin;
  const double transfer_us =
      microseconds(static_cast<double>(std::max<int64_t>(0, transfer)) * share);
  row.transfer_us += transfer_us;
  const bool by_copies =
      std::any_of(parts.begin(), parts.end(), [](auto& part) { return part.by_copies; });
  row.by_copies += by_copies;
  std::vector<double> waited;
  double waiting = 0, between = 0, running = 0, overlapped = 0;
  for (const Part& part : parts) {
    const int64_t wait = together ? part.length() - shortest->length()
                                  : std::min(latest->begin - part.begin, part.length());
    waited.push_back(microseconds(static_cast<double>(wait) * part.share));
    waiting += waited.back();
    between += microseconds(part.between);
    running += microseconds(part.running);
    overlapped += microseconds(part.overlapped);
    if (!calls_) continue;
    CollectiveCall& kept = (*calls_)[calls_->size() - parts.size() + waited.size() - 1];
    kept.matched = true;
    kept.transfer_us = transfer_us;
    if (!by_copies) kept.wait_us = waited.back();
    kept.exposed_us = microseconds(part.running - part.overlapped);
    kept.overlapped_us = microseconds(part.overlapped);
  }
  const auto count = static_cast<double>(parts.size());
  (by_copies ? row.between_us : row.waiting_us) += (by_copies ? between : waiting) / count;
  row.overlapped_us += overlapped / count;
  row.exposed_us += (running - overlapped) / count;
  if (!by_copies) add_waits(parts, together ? *shortest : *latest, waited);
  if (!message) return;
  const Part& sender = sends(parts[0].function) ? parts[0] : parts[1];
  const Part& receiver = &sender == &parts[0] ? parts[1] : parts[0];
  LinkRow& link = links_[{sender.rank, receiver.rank}];
  ++link.messages;
  link.bytes += bytes;
  // A kernel serves all peers of a group at once, and how long each of them took is not recorded:
  // no longer than the kernel.
  link.transfer_us +=
      microseconds(static_cast<double>(std::max<int64_t>(0, transfer)) * sender.link_share);
}

void CollectiveTimesMaker::add_waits(std::span<const Part> parts, const Part& last,
                                     std::span<const double> waited) {
  std::map<int32_t, double> gpus;  // of the collective, by rank: they wait side by side
  for (const Part& part : parts) ++gpus[part.rank];
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank < 0 || last.rank < 0 || parts[i].rank == last.rank) continue;
    if (parts[i].share <= 0) continue;
    parts[i].waited = 1000 * waited[i] / parts[i].share;
    parts[i].awaited = last.rank, parts[i].gpus = gpus[parts[i].rank];
  }
}

RankMatrix CollectiveTimesMaker::matrix() const {
  RankMatrix out;
  if (waits_.empty()) return out;
  std::set<std::string> hosts;
  for (const auto& [rank, host] : hosts_) hosts.insert(host);
  const bool by_rank = hosts_.size() <= RankMatrix::kMostCells;
  const bool by_host = !by_rank && hosts.size() > 1 && hosts.size() <= RankMatrix::kMostCells;
  const size_t block = (hosts_.size() + RankMatrix::kMostCells - 1) / RankMatrix::kMostCells;
  std::map<int32_t, size_t> places;
  std::map<std::string, size_t> of_hosts;
  size_t index = 0;
  for (auto at = hosts_.begin(); at != hosts_.end(); ++at, ++index) {
    if (by_host) {
      const auto [place, fresh] = of_hosts.emplace(at->second, out.names.size());
      if (fresh) out.names.push_back(at->second);
      places[at->first] = place->second;
      continue;
    }
    places[at->first] = index / block;
    const std::string rank = std::to_string(at->first);
    if (index % block == 0) {
      out.names.push_back((by_rank ? "rank " : "ranks ") + rank);
    } else if (index % block == block - 1 || index + 1 == hosts_.size()) {
      out.names.back() += "-" + rank;
    }
  }
  out.waits_us.assign(out.names.size(), std::vector<double>(out.names.size()));
  for (const auto& [ranks, us] : waits_) {
    out.waits_us[places.at(ranks.first)][places.at(ranks.second)] += us;
  }
  return out;
}

CollectiveTimes CollectiveTimesMaker::take() {
  for (auto& [key, row] : rows_) {
    std::tie(row.communicator, row.ranks, row.function, row.least_bytes) = key;
    row.members.assign(members_[key].begin(), members_[key].end());
    if (row.members.size() == row.ranks) {
      row.peak = interconnect_.peak_of(row.function, row.members);
    }
    if (row.transfer_us > 0) {
      row.algorithm_gbs = static_cast<double>(row.bytes) / row.transfer_us / 1e3;
      row.bus_gbs = row.algorithm_gbs * bus_factor(row.function, row.ranks);
    }
    out_.calls += row.calls, out_.matched += row.matched;
    out_.rows.push_back(std::move(row));
  }
  const auto time = [](const CollectiveTimesRow& row) { return row.transfer_us + row.waiting_us; };
  std::stable_sort(out_.rows.begin(), out_.rows.end(),
                   [&](const auto& a, const auto& b) { return time(a) > time(b); });
  std::map<std::pair<std::string, std::string>, LinkRow> of_hosts;
  for (auto& [ranks, link] : links_) {
    const std::string &from = hosts_[ranks.first], &to = hosts_[ranks.second];
    LinkRow& both = of_hosts[{from, to}];
    both.from = from, both.to = to;
    both.messages += link.messages, both.bytes += link.bytes;
    both.transfer_us += link.transfer_us;
    link.from = std::to_string(ranks.first), link.to = std::to_string(ranks.second);
    out_.links.push_back(link);
  }
  if (of_hosts.size() > 1) {
    for (auto& [hosts, link] : of_hosts) out_.host_links.push_back(std::move(link));
  }
  const auto faster = [](const LinkRow& a, const LinkRow& b) { return a.gbs() > b.gbs(); };
  std::stable_sort(out_.links.begin(), out_.links.end(), faster);
  std::stable_sort(out_.host_links.begin(), out_.host_links.end(), faster);
  out_.waits = matrix();
  return std::move(out_);
}

}  // namespace gpuprof::analysis
