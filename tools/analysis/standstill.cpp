// SPDX-License-Identifier: Apache-2.0
#include "tools/analysis/standstill.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "formats/ring_beside.h"
#include "formats/trace/listing.h"
#include "tools/console.h"

namespace gpuprof::analysis {
namespace {

// No call for this long, and for so many steps, is no step that takes longer than others.
constexpr int64_t kLeastSilenceNs = 2'000'000'000;
constexpr int64_t kMedianSteps = 10, kLongestSteps = 2;
// Process start and the first steps (compilation, warm-up) say nothing of how long a step takes.
constexpr size_t kFirstSteps = 3;

struct Member {
  const Process* process;
  int64_t last_call = 0;  // end of the last call that issued something, or step boundary
  int64_t alive_until = 0;
  int64_t seen_until = 0;     // until then it could show another call, or sign of life
  bool gone = false;          // no sign of life for long, and no orderly end: stopped, or killed
  bool lost_records = false;  // so that it may have issued more than is known
};

enum class Life {
  unknown,  // on another machine, or over
  goes_on,
  stopped,  // by a signal
};

Life life_of(const Process& process) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  if (process.header.host() != host) return Life::unknown;
  std::ifstream file(fmt::format("/proc/{}/stat", process.header.pid()));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t bracket = text.rfind(") ");
  if (bracket == std::string::npos) return Life::unknown;
  constexpr int kStart = 22, kState = 3;  // as proc(5) counts fields
  const char state = text[bracket + 2];
  size_t at = bracket + 2;
  for (int field = kState; field < kStart && at != std::string::npos; ++field) {
    at = text.find(' ', at);
    if (at != std::string::npos) ++at;
  }
  const bool same = at != std::string::npos &&
                    std::strtoull(text.c_str() + at, nullptr, 10) == process.header.os_start_time();
  if (!same || state == 'Z' || state == 'X') return Life::unknown;
  return state == 'T' || state == 't' ? Life::stopped : Life::goes_on;
}

bool issues(Kind kind) {
  return kind == Kind::launch || kind == Kind::copy || kind == Kind::set ||
         kind == Kind::collective || kind == Kind::alloc || kind == Kind::dealloc;
}

// Waiting threads that ask again and again (NCCL's watchdogs) issue nothing.
int64_t last_call_of(const Trace& trace, const Process& process) {
  int64_t last = process.steps.empty() ? process.window_begin : process.steps.back().end;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::thread) continue;
    for (uint32_t i = lane.first_event + lane.event_count; i-- > lane.first_event;) {
      if (!issues(trace.shapes[process.events.shape_of(i)].kind)) continue;
      last = std::max(last, process.events.end_of(i));
      break;
    }
  }
  return last;
}

int64_t alive_until(const Process& process, int64_t last_call) {
  int64_t out = std::max(last_call, process.window_end);
  if (!process.recovered || process.clock.anchors().empty()) return out;
  return std::max(out, process.clock.anchors().back().monotonic_ns + process.realtime_offset);
}

// How long a rank may be silent as a matter of course.
int64_t usual_silence(const Process& process) {
  if (process.steps.size() <= kFirstSteps) return kLeastSilenceNs;
  std::vector<int64_t> lengths;
  for (size_t i = kFirstSteps; i < process.steps.size(); ++i) {
    lengths.push_back(process.steps[i].end - process.steps[i].begin);
  }
  std::sort(lengths.begin(), lengths.end());
  return std::max({kLeastSilenceNs, kMedianSteps * lengths[lengths.size() / 2],
                   kLongestSteps * lengths.back()});
}

// The newest window of each rank. None, if their windows began with different steps.
std::vector<Member> members_of(const Trace& trace) {
  std::map<int32_t, const Process*> newest;
  for (const Process& process : trace.processes) {
    const int32_t rank = process.header.rank();
    if (process.source != Source::dump || process.is_data_worker() || rank < 0) continue;
    const Process*& known = newest[rank];
    if (!known || known->window_begin < process.window_begin) known = &process;
  }
  std::vector<Member> out;
  for (const auto& [rank, process] : newest) {
    const bool alike =
        process->header.window() == newest.begin()->second->header.window() &&
        process->summary.first_step() == newest.begin()->second->summary.first_step();
    if (!alike) return {};
    out.push_back({process});
  }
  return out;
}

// A window that ended as it should is over: what came after it is not recorded.
bool ended_in_order(const Process& process) {
  return process.completeness == Completeness::complete && !process.recovered &&
         !process.summary.partial();
}

// Steps followed the window, as the process's ring tells.
bool has_gone_on(const Process& process, uint64_t boundaries_so_far) {
  const uint64_t known = process.steps.empty() ? 1 : process.steps.back().step + 2;
  return boundaries_so_far > known;
}

bool is_whole(const Process& process) {
  return process.completeness == Completeness::complete && !process.recovered;
}

// Of windows that are on disk as a whole: a limit or the program's end cut them. The job stands
// still only if rings lie beside all of them, and none has another step.
void note_end(const std::vector<Member>& members, Standstill& out) {
  std::string ended_by;
  for (const Member& member : members) {
    if (!is_whole(*member.process)) return;
    const std::optional<uint64_t> boundaries = boundaries_beside(*member.process);
    const bool went_on = boundaries && has_gone_on(*member.process, *boundaries);
    if (!boundaries || went_on) ended_by = member.process->summary.end_reason();
    out.went_on = out.went_on || went_on;
  }
  out.ended_by = ended_by;
}

bool all_stand(std::vector<Member>& members, const Trace& trace) {
  int64_t until = 0, usual = kLeastSilenceNs;
  for (Member& member : members) {
    if (ended_in_order(*member.process)) return false;
    member.last_call = last_call_of(trace, *member.process);
    member.alive_until = alive_until(*member.process, member.last_call);
    until = std::max(until, member.alive_until);
    usual = std::max(usual, usual_silence(*member.process));
  }
  bool any_waits = false;
  for (Member& member : members) {
    const Process& process = *member.process;
    member.seen_until = process.looked_at ? std::min(until, process.looked_at) : until;
    if (member.seen_until - member.last_call < usual) return false;
    // Beside other work a live process may be late with its sign.
    member.gone = process.recovered && member.seen_until - member.alive_until >= usual &&
                  life_of(process) != Life::goes_on;
    member.lost_records = process.losses[static_cast<size_t>(Loss::buffer_full)] > 0;
    any_waits = any_waits || member.alive_until - member.last_call >= usual;
  }
  return any_waits;
}

struct Issued {
  uint64_t count = 0;
  std::map<uint64_t, EventIndex> collectives;  // by number
};
// A communicator of all ranks has no common name: by its size, and the how-manieth of that size it
// is on its rank.
using Communicator = std::pair<uint32_t, size_t>;
using Issues = std::map<Communicator, Issued>;

Issues issues_of(const Trace& trace, const Process& process) {
  std::map<std::pair<uint32_t, uint64_t>, Issued> by_handle;
  std::map<std::pair<uint32_t, uint64_t>, int64_t> first;
  for (const Lane& lane : process.lanes) {
    if (lane.type != LaneType::thread || !lane.may_have(Kind::collective)) continue;
    for (const Event event : process.lane_events(lane)) {
      const Shape& shape = trace.shape(event);
      if (shape.kind != Kind::collective || shape.rank_count < 2) continue;
      const std::pair key(shape.rank_count, shape.communicator);
      const uint64_t number = process.extra(event).value;
      by_handle[key].collectives.emplace(number, event.index);
      by_handle[key].count = std::max(by_handle[key].count, number + 1);
      const auto [at, fresh] = first.try_emplace(key, event.begin);
      at->second = std::min(at->second, event.begin);
    }
  }
  std::vector<std::pair<int64_t, std::pair<uint32_t, uint64_t>>> order;
  for (const auto& [key, begin] : first) order.push_back({begin, key});
  std::sort(order.begin(), order.end());
  std::map<uint32_t, size_t> of_size;
  Issues out;
  for (const auto& [begin, key] : order) {
    out[{key.first, of_size[key.first]++}] = std::move(by_handle[key]);
  }
  return out;
}

void note_first(const std::vector<Member>& members, Standstill& out) {
  int64_t until = 0;
  const Member* first = nullptr;
  for (const Member& member : members) {
    until = std::max(until, member.alive_until);
    const int32_t rank = member.process->header.rank();
    if (std::find(out.behind.begin(), out.behind.end(), rank) == out.behind.end()) continue;
    if (!first || member.last_call < first->last_call) first = &member;
  }
  out.since = first->last_call;
  out.silent_ns = until - first->last_call;
  const std::vector<Step>& steps = first->process->steps;
  out.step_known = !steps.empty();
  if (out.step_known) out.step = steps.back().step + (steps.back().end <= out.since);
}

// Some communicator in which one or more ranks have issued less than the others, largest first.
bool behind_in_collectives(const Trace& trace, const std::vector<Member>& members,
                           Standstill& out) {
  std::vector<Issues> all;
  for (const Member& member : members) all.push_back(issues_of(trace, *member.process));
  for (auto at = all.front().rbegin(); at != all.front().rend(); ++at) {
    uint64_t least = UINT64_MAX, most = 0;
    for (const Issues& each : all) {
      const auto own = each.find(at->first);
      const uint64_t count = own == each.end() ? 0 : own->second.count;
      least = std::min(least, count);
      most = std::max(most, count);
    }
    if (least == most) continue;
    out.counts_differ = true;
    const auto unsure = [&](size_t i) {
      return members[i].lost_records && all[i][at->first].count == least;
    };
    bool any_unsure = false;
    for (size_t i = 0; i < all.size(); ++i) any_unsure = any_unsure || unsure(i);
    if (any_unsure) continue;
    for (size_t i = 0; i < all.size(); ++i) {
      const Issued& own = all[i][at->first];
      if (own.count == least) out.behind.push_back(members[i].process->header.rank());
      const auto next = own.collectives.find(least);
      if (next == own.collectives.end()) continue;
      const Process& process = *members[i].process;
      out.waiting_in = trace.text(trace.shape(process.event(next->second)).label);
    }
    out.issued = least;
    out.others_issued = most;
    out.communicator_ranks = at->first.first;
    return true;
  }
  return false;
}

// Collectives inside CUDA graphs are not calls: ranks that need each other are as far as their
// steps.
bool behind_in_steps(const std::vector<Member>& members, Standstill& out) {
  uint64_t least = UINT64_MAX, most = 0;
  for (const Member& member : members) {
    const Process& process = *member.process;
    if (process.header.nccl_version() == 0 || process.header.world_size() < 2) return false;
    const uint64_t steps = process.steps.empty() ? 0 : process.steps.back().step + 1;
    least = std::min(least, steps);
    most = std::max(most, steps);
  }
  if (least == most) return false;
  out.counts_differ = true;
  for (const Member& member : members) {
    const std::vector<Step>& steps = member.process->steps;
    if ((steps.empty() ? 0 : steps.back().step + 1) == least) {
      out.behind.push_back(member.process->header.rank());
    }
  }
  out.issued = least;
  out.others_issued = most;
  return true;
}

// Stopped or killed before the others fell silent, or soon after. Whoever ends ranks that wait in
// vain does so later.
std::vector<int32_t> first_gone(const std::vector<Member>& members) {
  int64_t last_call = 0;
  for (const Member& member : members) last_call = std::max(last_call, member.last_call);
  std::vector<int32_t> out;
  for (const Member& member : members) {
    const bool at_once = member.alive_until - last_call < kLeastSilenceNs;
    if (member.gone && at_once) out.push_back(member.process->header.rank());
  }
  if (out.size() == members.size()) out.clear();
  return out;
}

// Counts, unless a rank is gone that they do not name: a call that waits for it inside NCCL is
// recorded when it returns, so that others seem to have issued less.
bool find_behind(const Trace& trace, const std::vector<Member>& members, Standstill& out) {
  const std::vector<int32_t> gone = first_gone(members);
  const auto names_one_gone = [&](const Standstill& found) {
    return std::find_first_of(found.behind.begin(), found.behind.end(), gone.begin(), gone.end()) !=
           found.behind.end();
  };
  Standstill counted;
  const bool found =
      behind_in_collectives(trace, members, counted) || behind_in_steps(members, counted);
  if (found && (gone.empty() || names_one_gone(counted))) {
    out = std::move(counted);
    return true;
  }
  out.behind = gone;
  out.gone = !gone.empty();
  out.counts_differ = counted.counts_differ;
  return out.gone;
}

}  // namespace

std::optional<Standstill> standstill_of(const Trace& trace) {
  std::vector<Member> members = members_of(trace);
  if (members.size() < 2 || !all_stand(members, trace)) return std::nullopt;
  Standstill out;
  if (!find_behind(trace, members, out)) return std::nullopt;
  note_first(members, out);
  for (const Member& member : members) {
    const bool own = member.process->header.rank() == out.behind.front();
    if (own && life_of(*member.process) == Life::stopped) out.state = "stopped";
  }
  note_end(members, out);
  return out;
}

namespace {

// Whether the job still stands, or stood at the end of a window.
std::string describe_silence(const Standstill& in) {
  const std::time_t seconds = in.since / 1'000'000'000;
  const std::string silent = format_us(static_cast<double>(in.silent_ns) / 1000);
  const std::string who = rank_ranges(in.behind);
  std::string out =
      in.over() ? fmt::format(
                      "the job stood: {} made no call from {:%F %T} UTC on, for the last "
                      "{} of a window",
                      who, fmt::gmtime(seconds), silent)
                : fmt::format(
                      "the job stands: {} {} made no call since {:%F %T} UTC, {} before "
                      "the last sign of life",
                      who, in.behind.size() > 1 ? "have" : "has", fmt::gmtime(seconds), silent);
  if (in.step_known) out += fmt::format(", in step {}", in.step);
  if (!in.state.empty()) out += fmt::format(" (its process is {})", in.state);
  if (in.over()) {
    out +=
        fmt::format(". The window was ended by {}, and {}", in.ended_by,
                    in.went_on ? "more steps came after it" : "what came after it is not recorded");
  }
  return out;
}

}  // namespace

std::string describe(const Standstill& in) {
  const bool several = in.behind.size() > 1;
  std::string out = describe_silence(in);
  if (in.communicator_ranks) {
    out += fmt::format(
        ". {} issued {} collectives of the window on the communicator of {} ranks, others up to "
        "{}. "
        "They {} in number {}{}",
        several ? "These" : "It", in.issued, in.communicator_ranks, in.others_issued,
        in.over() ? "waited" : "wait", in.issued + 1,
        in.waiting_in.empty() ? "" : ", " + in.waiting_in);
  } else if (in.gone) {
    out += fmt::format(", and {} killed or stopped: no sign of life came since{}",
                       several ? "were" : "was",
                       in.counts_differ ? "" : ". All ranks issued as many collectives");
  } else {
    out += fmt::format(". Others {} in step {}", in.over() ? "were" : "are", in.others_issued);
  }
  return out;
}

const char* key_of(const Standstill& in) { return in.over() ? "stood" : "standstill"; }

Json to_json(const Standstill& in) {
  Json out = {{"ranks", in.behind},
              {"since_ns", in.since},
              {"silent_us", in.silent_ns / 1000},
              {"issued", in.issued},
              {"others_issued", in.others_issued},
              {"counted", in.gone                 ? "signs of life"
                          : in.communicator_ranks ? "collectives"
                                                  : "steps"},
              {"text", describe(in)}};
  if (in.step_known) out["step"] = in.step;
  if (in.communicator_ranks) out["communicator_ranks"] = in.communicator_ranks;
  if (!in.waiting_in.empty()) out["waiting_in"] = in.waiting_in;
  if (!in.state.empty()) out["state"] = in.state;
  if (in.over()) out["ended_by"] = in.ended_by;
  return out;
}

}  // namespace gpuprof::analysis
