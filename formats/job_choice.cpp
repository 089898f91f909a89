// SPDX-License-Identifier: Apache-2.0
#include "formats/job_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "formats/core/early_window.h"
#include "formats/ring_beside.h"
#include "formats/trace/listing.h"
#include "formats/trace/process_key.h"

namespace gpuprof {
namespace {

// One process, with all its windows.
struct Member {
  std::vector<Process*> windows;
  int64_t begin = INT64_MAX, end = INT64_MIN;  // ns since the Unix epoch
  int32_t rank = -1, world = 0;
  std::string host;
  // CLOCK_MONOTONIC, in ns: when the process began, to 10 ms; its last window's end.
  int64_t started = INT64_MAX, ended = 0;
  int64_t clock_offset = 0;         // of times since the Unix epoch to these
  std::set<uint64_t> of_all_ranks;  // identities of its communicators of the whole world

  bool started_after(const Member& other) const {
    return started > 0 && std::min(started + clock_offset, begin) > other.end;
  }
};

struct Attempt {
  std::string job;
  std::set<std::string> numbers;  // as the dumps have them; none: they do not
  std::string name;  // its number, "1/0" of several; of a later one with the same "0#2"
  std::vector<Member> members;

  int64_t begin() const {
    int64_t out = INT64_MAX;
    for (const Member& member : members) out = std::min(out, member.begin);
    return out;
  }
  int32_t world() const {
    int32_t out = 0;
    for (const Member& member : members) out = std::max(out, member.world);
    return out;
  }
  std::set<int32_t> ranks() const {
    std::set<int32_t> out;
    for (const Member& member : members) {
      if (member.rank >= 0) out.insert(member.rank);
    }
    return out;
  }
  bool whole() const {
    for (const Member& member : members) {
      for (const Process* window : member.windows) {
        if (window->completeness != Completeness::complete) return false;
      }
    }
    return world() == 0 || ranks().size() == static_cast<size_t>(world());
  }
};

std::string job_of(const Process& process) {
  return process.header.job().empty() ? process.header.run() : process.header.job();
}

// When the process began, at the latest. The kernel's time has in it the time that the machine
// slept (start_boottime in its fs/proc/array.c), which CLOCK_MONOTONIC has not.
int64_t started_by(const Process& process) {
  constexpr int64_t kOsTick = 10'000'000;  // ns
  const int64_t of_kernel = static_cast<int64_t>(process.header.os_start_time()) * kOsTick;
  const uint64_t loaded = process.header.process_start_ticks();
  if (loaded == 0 || !process.clock.usable()) return of_kernel;
  return std::min(of_kernel, process.clock.monotonic_ns(loaded));
}

void note_communicators(const Process& process, Member& member) {
  for (int i = 0; i < process.summary.communicator_size(); ++i) {
    const dump::Communicator& each = process.summary.communicator(i);
    const bool of_all = static_cast<int32_t>(each.rank_count()) == process.header.world_size();
    if (of_all && each.identity() != 0) member.of_all_ranks.insert(each.identity());
  }
}

std::vector<Member> members_of(Trace& trace) {
  std::map<ProcessKey, Member> found;
  for (Process& process : trace.processes) {
    if (process.is_data_worker() || process.source != Source::dump || !process.has_header) continue;
    Member& member = found[key_of(process)];
    member.windows.push_back(&process);
    member.begin = std::min(member.begin, process.window_begin);
    member.end = std::max(member.end, process.window_end);
    member.rank = process.header.rank();
    member.world = std::max(member.world, process.header.world_size());
    member.host = process.header.host();
    member.started = std::min(member.started, started_by(process));  // exec loads the library anew
    member.ended = std::max(member.ended, process.monotonic(process.window_end));
    member.clock_offset = process.realtime_offset;
    note_communicators(process, member);
  }
  std::vector<Member> out;
  for (auto& [key, member] : found) out.push_back(std::move(member));
  std::stable_sort(out.begin(), out.end(),
                   [](const Member& a, const Member& b) { return a.begin < b.begin; });
  return out;
}

// Whether a process without a rank was started after all that is recorded of another one of its
// host: a program that was run again. Ranks that nobody has numbered are started together.
bool runs_again(const Member& before, const Member& after) {
  return after.host == before.host && after.started > 0 && after.started >= before.ended;
}

// Whether this process can only be of the attempt after: its rank has run before, and ended, or it
// was started when all that is recorded of the others was over.
bool begins_another(const Attempt& attempt, const Member& member) {
  const auto is_before = [&](const Member& other) { return member.started_after(other); };
  if (member.rank >= 0 && std::all_of(attempt.members.begin(), attempt.members.end(), is_before)) {
    return true;
  }
  return std::any_of(attempt.members.begin(), attempt.members.end(), [&](const Member& other) {
    return other.rank == member.rank && member.begin >= other.end &&
           (member.rank >= 0 || runs_again(other, member));
  });
}

// Launchers count a job's restarts, and not the programs that one job runs one after the other.
std::string free_name(const std::string& number, const std::set<std::string>& taken) {
  std::string name = number;
  for (size_t i = 2; taken.contains(name); ++i) name = fmt::format("{}#{}", number, i);
  return name;
}

// The part of a number that the scheduler counted, for all hosts alike: "1." of "1.0".
std::string_view of_scheduler(std::string_view number) {
  const size_t dot = number.find('.');
  return number.substr(0, dot == std::string_view::npos ? 0 : dot + 1);
}

// Each of torchrun's agents counts its own restarts: one whose workers were well when another's
// failed starts them again uncounted. Members with other numbers are of one attempt if they are
// other ranks of its world, live at the same time, and have a communicator in common, as far as is
// known.
bool completes(const Attempt& attempt, const Member& member, const std::string& number) {
  if (of_scheduler(*attempt.numbers.begin()) != of_scheduler(number)) return false;
  if (member.world < 2 || member.rank < 0 || attempt.ranks().contains(member.rank)) return false;
  return std::all_of(attempt.members.begin(), attempt.members.end(), [&](const Member& other) {
    const bool known = !other.of_all_ranks.empty() && !member.of_all_ranks.empty();
    const bool shares =
        std::any_of(member.of_all_ranks.begin(), member.of_all_ranks.end(),
                    [&](uint64_t identity) { return other.of_all_ranks.contains(identity); });
    return other.world == member.world && !member.started_after(other) &&
           !other.started_after(member) && (!known || shares);
  });
}

// By what the dumps themselves say. A job that goes on with other ranks is another attempt.
bool may_be_of(const Attempt& attempt, const Member& member, const std::string& number) {
  const int32_t world = attempt.world();
  if (world > 0 && member.world > 0 && world != member.world) return false;
  if (attempt.numbers.empty() || number.empty()) return attempt.numbers.empty() && number.empty();
  return attempt.numbers.contains(number) || completes(attempt, member, number);
}

void name_attempts(std::vector<Attempt>& attempts) {
  std::map<std::string, std::set<std::string>> taken;  // by job
  for (Attempt& attempt : attempts) {
    std::set<std::string>& names = taken[attempt.job];
    std::string number;
    for (auto at = attempt.numbers.rbegin(); at != attempt.numbers.rend(); ++at) {
      number += (number.empty() ? "" : "/") + *at;
    }
    attempt.name = free_name(number.empty() ? std::to_string(names.size()) : number, names);
    names.insert(attempt.name);
  }
}

std::vector<Attempt> attempts_of(Trace& trace) {
  std::vector<Attempt> out;
  for (Member& member : members_of(trace)) {
    const std::string job = job_of(*member.windows[0]);
    const std::string number = member.windows[0]->header.attempt();
    Attempt* found = nullptr;
    for (Attempt& attempt : out) {
      if (attempt.job != job || !may_be_of(attempt, member, number)) continue;
      found = begins_another(attempt, member) ? nullptr : &attempt;
    }
    if (!found) found = &out.emplace_back(Attempt{job, {}, {}, {}});
    if (!number.empty()) found->numbers.insert(number);
    found->members.push_back(std::move(member));
  }
  name_attempts(out);
  return out;
}

std::string describe(const Attempt& attempt) {
  const auto seconds = static_cast<time_t>(attempt.begin() / 1'000'000'000);
  struct tm utc {};
  gmtime_r(&seconds, &utc);
  char when[32];
  strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  const size_t ranks = attempt.ranks().size();
  return fmt::format("{} ({} of {} ranks, from {}{})", attempt.name,
                     ranks ? ranks : attempt.members.size(),
                     attempt.world() ? std::to_string(attempt.world()) : std::string("unknown"),
                     when, attempt.whole() ? "" : ", not whole");
}

const Attempt* newest_whole(const std::vector<const Attempt*>& attempts) {
  return *std::max_element(attempts.begin(), attempts.end(), [](auto* a, auto* b) {
    return std::pair(a->whole(), a->begin()) < std::pair(b->whole(), b->begin());
  });
}

std::string list(const std::vector<const Attempt*>& attempts, bool of_jobs) {
  std::string out;
  for (const Attempt* attempt : attempts) {
    out += out.empty() ? "" : ", ";
    if (of_jobs) out += attempt->job + " attempt ";
    out += describe(*attempt);
  }
  return out;
}

bool refuse(Trace& trace, const std::string& reason) {
  trace.problems.insert(trace.problems.begin(), {trace.processes[0].path, 0, reason, true});
  return false;
}

void keep_only(Trace& trace, const std::vector<const Attempt*>& chosen) {
  std::set<const Process*> kept;
  std::map<ProcessStart, const Member*> loaders;
  for (const Attempt* attempt : chosen) {
    for (const Member& member : attempt->members) {
      kept.insert(member.windows.begin(), member.windows.end());
      loaders.emplace(start_of(*member.windows[0]), &member);
    }
  }
  const auto stays = [&](const Process& process) {
    if (process.source != Source::dump || !process.has_header) return true;
    if (!process.is_data_worker()) return kept.contains(&process);
    return loader_of(process, loaders) != loaders.end();
  };
  std::vector<Process> left;
  for (Process& process : trace.processes) {
    if (stays(process)) left.push_back(std::move(process));
  }
  trace.processes = std::move(left);
}

bool is_same_window(const Process& a, const Process& b) {
  return a.path != b.path && a.window_begin == b.window_begin &&
         a.header.process_start_ticks() == b.header.process_start_ticks();
}

// How much of its window a file holds.
std::tuple<bool, size_t, size_t> fullness(const Process& process) {
  return {process.completeness == Completeness::complete, process.events.size(),
          process.steps.size()};
}

// The same window of the same process, once more: the file that holds most of it counts.
void drop_copies(Trace& trace) {
  std::map<std::pair<ProcessKey, uint32_t>, std::vector<size_t>> seen;
  std::vector<size_t> copy_of(trace.processes.size());
  for (size_t i = 0; i < trace.processes.size(); ++i) {
    const Process& process = trace.processes[i];
    copy_of[i] = i;
    if (process.source != Source::dump || process.is_data_worker() || !process.has_header) continue;
    std::vector<size_t>& fullest = seen[{key_of(process), process.header.window()}];
    const auto same = std::find_if(fullest.begin(), fullest.end(), [&](size_t other) {
      return is_same_window(process, trace.processes[other]);
    });
    if (same == fullest.end()) {
      fullest.push_back(i);
    } else if (fullness(process) > fullness(trace.processes[*same])) {
      copy_of[*same] = i;
      *same = i;
    } else {
      copy_of[i] = *same;
    }
  }
  std::vector<std::string> notes;
  std::vector<Process> left;
  for (size_t i = 0; i < copy_of.size(); ++i) {
    if (copy_of[i] == i) continue;
    size_t kept = copy_of[i];
    while (copy_of[kept] != kept) kept = copy_of[kept];
    const Process& copy = trace.processes[i];
    const Process& whole = trace.processes[kept];
    const bool less = fullness(copy) < fullness(whole);
    notes.push_back(fmt::format("{} is a {}copy of {}; {}", copy.path, less ? "less complete " : "",
                                whole.path, less ? "only the other counts" : "it counts once"));
  }
  for (size_t i = 0; i < copy_of.size(); ++i) {
    if (copy_of[i] == i) left.push_back(std::move(trace.processes[i]));
  }
  trace.processes = std::move(left);
  trace.notes.insert(trace.notes.end(), std::make_move_iterator(notes.begin()),
                     std::make_move_iterator(notes.end()));
}

void note_missing(Trace& trace, const Attempt& attempt) {
  const std::set<int32_t> there = attempt.ranks();
  const int32_t world = attempt.world();
  if (there.empty() || world <= static_cast<int32_t>(there.size())) return;
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < world; ++rank) {
    if (!there.contains(rank)) missing.push_back(rank);
  }
  trace.notes.push_back(fmt::format("{} of {} ranks have dumps; {} missing", there.size(), world,
                                    rank_ranges(missing) + (missing.size() == 1 ? " is" : " are")));
}

// When a process ended for which a later window of others has no dump.
std::string end_of(const Member& member) {
  const std::optional<uint64_t> boundaries = boundaries_beside(*member.windows.back());
  if (!boundaries || *boundaries < 2) return {};
  return fmt::format(" (its process was killed or still runs, and its last step so far is {})",
                     *boundaries - 2);
}

// Ranks that have windows, but not each that others have: they ended before it, or it is to come.
void note_missing_in_windows(Trace& trace, const Attempt& attempt) {
  std::map<uint32_t, std::set<int32_t>> windows;
  for (const Member& member : attempt.members) {
    for (const Process* window : member.windows) {
      const uint32_t number = window->header.window();
      const bool is_none =
          window->recovered && window->header.window_begin_ticks() == 0 &&
          window->summary.window_begin_ticks() == 0;  // what a ring has beside them
      if (member.rank < 0 || is_early_window(number) || is_none) continue;
      windows[number].insert(member.rank);
    }
  }
  const size_t all = attempt.ranks().size();
  for (const auto& [number, there] : windows) {
    if (there.size() == all) continue;
    std::vector<int32_t> missing;
    std::string end;
    for (const Member& member : attempt.members) {
      if (member.rank < 0 || there.contains(member.rank)) continue;
      missing.push_back(member.rank);
      end = end_of(member);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    trace.notes.push_back(fmt::format("window {} is of {} of these {} ranks: {} {} no dump of it{}",
                                      number, there.size(), all, rank_ranges(missing),
                                      missing.size() == 1 ? "has" : "have",
                                      missing.size() == 1 ? end : ""));
  }
}

// Attempts that are read as one: several processes of one rank are then summed up as if they were
// one.
void note_mixed(Trace& trace, const std::vector<const Attempt*>& attempts) {
  std::map<int32_t, size_t> processes;
  for (const Attempt* attempt : attempts) {
    for (const Member& member : attempt->members) ++processes[member.rank];
  }
  std::vector<int32_t> several;
  for (const auto& [rank, count] : processes) {
    if (rank >= 0 && count > 1) several.push_back(rank);
  }
  if (attempts.size() < 2 || several.empty()) return;
  trace.notes.push_back(fmt::format("{} attempts are read as one: {}; {} {} several processes",
                                    attempts.size(), list(attempts, false), rank_ranges(several),
                                    several.size() == 1 ? "has" : "have"));
}

void note_truncated(Trace& trace, const Attempt& attempt) {
  std::vector<int32_t> ranks;
  for (const Member& member : attempt.members) {
    const bool cut = std::any_of(member.windows.begin(), member.windows.end(), [](auto* window) {
      return window->completeness != Completeness::complete;
    });
    if (cut && member.rank >= 0) ranks.push_back(member.rank);
  }
  if (ranks.empty() || attempt.members.size() < 2) return;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  trace.notes.push_back(rank_ranges(ranks) + ": the dump is not whole; what is readable counts");
}

using RanksBySteps = std::map<std::pair<uint64_t, uint64_t>, std::vector<int32_t>>;

// Which ranks recorded which steps of a window.
std::string steps_of_ranks(const RanksBySteps& by_steps) {
  const auto most = std::max_element(by_steps.begin(), by_steps.end(), [](auto& a, auto& b) {
    return a.second.size() < b.second.size();
  });
  std::vector<int32_t> others;
  for (const auto& [steps, ranks] : by_steps) {
    if (steps != most->first) others.insert(others.end(), ranks.begin(), ranks.end());
  }
  std::sort(others.begin(), others.end());
  if (most->second.size() > others.size()) {
    return fmt::format("{} recorded other steps than {}-{}, which most ranks have",
                       rank_ranges(others), most->first.first, most->first.second);
  }
  constexpr size_t kNamed = 4;
  std::string out;
  size_t named = 0;
  for (auto [steps, ranks] : by_steps) {
    if (named++ == kNamed) return out + ", and so on";
    std::sort(ranks.begin(), ranks.end());
    out += fmt::format("{}{} recorded steps {}-{}", out.empty() ? "" : ", ", rank_ranges(ranks),
                       steps.first, steps.second);
  }
  return out;
}

// Windows of which not all ranks have the same steps.
void note_late(Trace& trace, const Attempt& attempt) {
  std::map<uint32_t, RanksBySteps> windows;
  for (const Member& member : attempt.members) {
    for (const Process* window : member.windows) {
      const auto steps = window->window_steps();
      if (steps.empty() || member.rank < 0 || is_early_window(window->header.window())) continue;
      windows[window->header.window()][{steps.front().step, steps.back().step}].push_back(
          member.rank);
    }
  }
  for (const auto& [number, by_steps] : windows) {
    if (by_steps.size() < 2) continue;
    uint64_t first = 0, last = UINT64_MAX;
    for (const auto& [steps, ranks] : by_steps) {
      first = std::max(first, steps.first);
      last = std::min(last, steps.second);
    }
    trace.notes.push_back(
        fmt::format("window {}: {}; {}", number, steps_of_ranks(by_steps),
                    first <= last ? fmt::format("steps {}-{} are common and compared", first, last)
                                  : std::string("none is common to all")));
  }
}

void note_versions(Trace& trace, const Attempt& attempt) {
  std::set<std::string> versions;
  for (const Member& member : attempt.members) {
    versions.insert(member.windows[0]->header.tool_version());
  }
  if (versions.size() < 2) return;
  std::string text;
  for (const std::string& version : versions) text += (text.empty() ? "" : ", ") + version;
  trace.notes.push_back(fmt::format("the dumps are of several versions of gpuprof: {}", text));
}

}  // namespace

bool choose_job(Trace& trace, const JobChoice& choice) {
  drop_copies(trace);
  std::vector<Attempt> attempts = attempts_of(trace);
  if (attempts.empty()) {  // other tools' traces, which name neither
    const bool all = choice.attempt.empty() || choice.attempt == "all";
    if (choice.job.empty() && all) return true;
    return !trace.processes.empty() &&
           refuse(trace,
                  fmt::format("names no job and no attempt, as traces of other tools do not; "
                              "leave out {}",
                              choice.job.empty() ? "--attempt" : "--job"));
  }
  std::set<std::string> jobs;
  std::vector<const Attempt*> all, of_job;
  for (const Attempt& attempt : attempts) {
    jobs.insert(attempt.job);
    all.push_back(&attempt);
    if (!choice.job.empty() && attempt.job == choice.job) of_job.push_back(&attempt);
  }
  if (!choice.job.empty() && of_job.empty()) {
    return refuse(trace, fmt::format("no job {} is here; --job takes one of: {}", choice.job,
                                     fmt::join(jobs, ", ")));
  }
  if (choice.job.empty()) {
    const std::string newest = newest_whole(all)->job;
    std::copy_if(all.begin(), all.end(), std::back_inserter(of_job),
                 [&](const Attempt* attempt) { return attempt->job == newest; });
    if (jobs.size() > 1) {
      trace.notes.push_back(
          fmt::format("{} jobs are here: {}; taking {}, the one of the newest whole attempt; --job "
                      "takes another",
                      jobs.size(), list(all, true), newest));
    }
  }
  if (choice.attempt == "all") {
    note_mixed(trace, of_job);
    if (of_job.size() < attempts.size()) keep_only(trace, of_job);
    return true;
  }
  const Attempt* chosen = newest_whole(of_job);
  if (!choice.attempt.empty()) {
    const auto named = std::find_if(of_job.begin(), of_job.end(), [&](const Attempt* attempt) {
      return attempt->name == choice.attempt;
    });
    if (named == of_job.end()) {
      return refuse(trace, fmt::format("no attempt {} is here; --attempt takes one of: {}",
                                       choice.attempt, list(of_job, false)));
    }
    chosen = *named;
  } else if (of_job.size() > 1) {
    trace.notes.push_back(fmt::format(
        "{} attempts of {} are here: {}; taking {}, the newest{}; --attempt takes another (diff: "
        "--base-attempt, --new-attempt)",
        of_job.size(), chosen->job.empty() ? "a job" : "job " + chosen->job, list(of_job, false),
        chosen->name, chosen->whole() ? " whole one" : ", as none is whole"));
  }
  note_missing(trace, *chosen);
  note_missing_in_windows(trace, *chosen);
  note_truncated(trace, *chosen);
  note_late(trace, *chosen);
  note_versions(trace, *chosen);
  if (attempts.size() > 1) keep_only(trace, {chosen});
  return true;
}

}  // namespace gpuprof
