// SPDX-License-Identifier: Apache-2.0
#include "formats/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "formats/core/early_window.h"
#include "formats/dump/ring_reader.h"
#include "formats/dump/trace_builder.h"
#include "formats/io/file_bytes.h"
#include "formats/kineto_reader/is_kineto.h"
#include "formats/kineto_reader/reader.h"
#include "formats/lost_rings.h"
#include "formats/trace/process_ranks.h"
#include "formats/trace_choice.h"
#include "formats/trace_windows.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDump = ".gpuprof", kPart = ".gpuprof.part", kRing = ".gpuprof.ring";

bool is_ours(std::string_view name) {
  return name.ends_with(kDump) || name.ends_with(kPart) || name.ends_with(kRing);
}

bool is_json(std::string_view name) {
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

// What the file names of one process have in common: no suffix, no window.
std::string process_key(const std::string& path) {
  std::string_view key = path;
  for (const std::string_view suffix : {kPart, kRing, kDump}) {
    if (key.ends_with(suffix)) {
      key.remove_suffix(suffix.size());
      break;
    }
  }
  for (const std::string_view window : {"_w", "_early"}) {
    const size_t mark = key.rfind(window), digits = mark + window.size();
    if (mark != std::string_view::npos && digits < key.size() &&
        key.find_first_not_of("0123456789", digits) == std::string_view::npos) {
      return std::string(key.substr(0, mark));
    }
  }
  return std::string(key);
}

// The dump of a window of the process that has this ring, once it is complete.
std::string dump_beside(std::string_view ring, uint32_t window) {
  const bool early = is_early_window(window);
  return fmt::format("{}_{}{}{}", ring.substr(0, ring.size() - kRing.size()), early ? "early" : "w",
                     early ? window - kFirstEarlyWindow : window, kDump);
}

bool is_there(const std::string& path) {
  std::error_code error;
  return fs::status(path, error).type() != fs::file_type::not_found;
}

// A ring's bytes as they were then.
struct OpenRing {
  std::string path, bytes;
  int64_t looked_at = 0;
  std::unique_ptr<RingReader> reader;  // of `bytes`
};

int64_t now_ns() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count();
}

struct ProcessFiles {
  std::vector<std::string> dumps, parts, rings, traces;
  std::vector<std::string> beside;  // dumps that were not named, of a ring that was
};

class Loader {
 public:
  Loader(Input& input, const InputOptions& options) : input_(input), options_(options) {}

  void add(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (is_lost_ring(path)) {
      input_.trace.problems.push_back(describe_lost_rings({path}));
    } else if (!fs::exists(status)) {
      problem(path, error && error != std::errc::no_such_file_or_directory
                        ? "cannot be opened: " + error.message()
                        : std::string("no such file or directory"));
    } else if (fs::is_directory(status)) {
      add_directory(path);
    } else {
      add_file(path);
      add_companions(path);
    }
  }

  void load(bool choose) {
    for (const auto& [key, files] : groups_) {
      count_ += files.dumps.size() + files.parts.size() + files.rings.size() + files.traces.size();
    }
    for (const std::string& key : order_) load_process(groups_[key]);
    auto& processes = input_.trace.processes;
    number_windows(input_.trace);
    if (choose && !choose_job(input_.trace, options_.choice)) processes.clear();
    choose_traces(input_.trace, choose && options_.choice.attempt != "all");
    find_ranks(input_.trace);
    std::stable_sort(processes.begin(), processes.end(), [](const Process& a, const Process& b) {
      const auto key = [](const Process& p) {
        const dump::Header& h = p.header;
        return std::tuple(p.is_data_worker(), h.rank(), std::string_view(h.host()), h.pid(),
                          h.window());
      };
      return key(a) < key(b);
    });
  }

 private:
  void problem(const std::string& path, std::string reason) {
    input_.trace.problems.push_back({path, 0, std::move(reason)});
  }

  void add_file(const std::string& path) {
    std::error_code error;
    const fs::path same = fs::weakly_canonical(path, error);
    if (!seen_.insert(error ? path : same.string()).second) return;
    const bool trace = !is_ours(path) && is_kineto(path);
    if (!trace && !is_ours(path)) {
      if (std::string reason = why_not_kineto(path); !reason.empty()) {
        return problem(path, std::move(reason));
      }
    }
    const std::string key = process_key(path);
    if (!groups_.contains(key)) order_.push_back(key);
    ProcessFiles& files = groups_[key];
    (path.ends_with(kPart)   ? files.parts
     : path.ends_with(kRing) ? files.rings
     : trace                 ? files.traces
                             : files.dumps)
        .push_back(path);
  }

  // The ring of a part that was named alone, and the parts of a ring. The dumps beside a ring tell
  // which of its records it need not give.
  void add_companions(const std::string& path) {
    const bool part = path.ends_with(kPart), ring = path.ends_with(kRing);
    if (!part && !ring) return;
    const std::string key = process_key(path);
    const fs::path folder = fs::path(path).parent_path();
    std::error_code error;
    std::vector<std::string> found;
    for (fs::directory_iterator at(folder.empty() ? "." : folder, error), end; !error && at != end;
         at.increment(error)) {
      const std::string other = (folder / at->path().filename()).string();
      if (!is_ours(other) || process_key(other) != key) continue;
      if (other.ends_with(part ? kRing : kPart)) found.push_back(other);
      if (ring && other.ends_with(kDump)) groups_[key].beside.push_back(other);
    }
    std::sort(found.begin(), found.end());
    for (const std::string& other : found) {
      if (is_lost_ring(other)) {
        input_.trace.problems.push_back(describe_lost_rings({other}));
      } else {
        add_file(other);
      }
    }
  }

  void add_directory(const std::string& path) {
    Runs dumps, traces;
    std::map<std::string, std::vector<std::string>> lost;  // links to rings, by run
    std::error_code error;
    fs::directory_iterator(path, error);  // below it what may not be read is passed over
    if (error) return problem(path, "cannot be searched: " + error.message());
    fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      const std::string file = at->path().string();
      if (!is_ours(file) && !is_json(file)) continue;
      const std::string run = at->path().parent_path().filename().string();
      if (is_lost_ring(file)) lost[run].push_back(file);
      if (!at->is_regular_file(ignored)) continue;
      Runs& runs = is_ours(file) ? dumps : traces;
      runs.files[run].push_back(file);
      const fs::file_time_type time = at->last_write_time(ignored);
      fs::file_time_type& last = runs.newest.try_emplace(run, time).first->second;
      last = std::max(last, time);
    }
    if (error) problem(path, "cannot be searched: " + error.message());
    if (dumps.files.empty()) keep_traces(path, traces);
    Runs& runs = dumps.files.empty() ? traces : dumps;
    if (runs.files.empty()) {
      for (auto& [run, links] : lost) say_lost(links);
      if (!error && lost.empty()) {
        problem(path, "no gpuprof dump and no JSON trace in this directory");
      }
      return;
    }
    const std::string run = choose_run(path, runs.newest);
    for (const std::string& said : std::set<std::string>{run, linked_run(path)}) {
      if (const auto at = lost.find(said); at != lost.end()) say_lost(at->second);
    }
    std::vector<std::string>& files = runs.files[run];
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) add_file(file);
  }

  void say_lost(std::vector<std::string>& links) {
    std::sort(links.begin(), links.end());
    input_.trace.problems.push_back(describe_lost_rings(links));
  }

  // The run that `latest` names in this directory; empty: there is no such link.
  static std::string linked_run(const fs::path& path) {
    std::error_code error;
    const fs::path link = path / "latest";
    if (!fs::is_symlink(link, error)) return {};
    const fs::path target = fs::canonical(link, error);
    return error ? std::string() : target.filename().string();
  }

  // Files by run. A run is a directory's name: with %h in the output each host has its own folder.
  struct Runs {
    std::map<std::string, std::vector<std::string>> files;
    std::map<std::string, fs::file_time_type> newest;
  };

  // JSON is used for many things. What `convert` made of traces that are here is not another run.
  void keep_traces(const std::string& root, Runs& runs) {
    bool all_converted = true;
    for (auto& [run, files] : runs.files) {
      files = kineto_traces(files);
      leave_out_merged(files);
      for (const std::string& file : files) all_converted &= is_converted(root, file);
    }
    for (auto at = runs.files.begin(); at != runs.files.end();) {
      if (!all_converted) {
        std::erase_if(at->second,
                      [&](const std::string& file) { return is_converted(root, file); });
      }
      if (at->second.empty()) {
        runs.newest.erase(at->first);
        at = runs.files.erase(at);
      } else {
        ++at;
      }
    }
  }

  // SGLang's ProfileMerger writes all that ID-TP-0.trace.json.gz and its like have once more, into
  // merged-ID.trace.json.gz.
  void leave_out_merged(std::vector<std::string>& files) {
    constexpr std::string_view kMerged = "merged-";
    std::vector<std::string> merged;
    for (const std::string& file : files) {
      const size_t name = file.rfind('/') + 1, end = file.find(".trace.json", name);
      if (!std::string_view(file).substr(name).starts_with(kMerged) || end == file.npos) continue;
      const std::string id = file.substr(name + kMerged.size(), end - name - kMerged.size());
      const std::string one = file.substr(0, name) + id + "-";
      if (std::any_of(files.begin(), files.end(),
                      [&](const auto& f) { return f.starts_with(one); })) {
        merged.push_back(file);
      }
    }
    for (const std::string& file : merged) {
      std::erase(files, file);
      input_.trace.notes.push_back(
          fmt::format("{} holds again what the ranks' files beside it do, and is left out", file));
    }
  }

  // Whether a file below `root` lies in a directory that `convert` names, beside its input.
  static bool is_converted(const fs::path& root, const fs::path& file) {
    const fs::path below = file.parent_path().lexically_relative(root);
    return std::any_of(below.begin(), below.end(), [](const fs::path& part) {
      return part.extension() == ".kineto" || part.extension() == ".tensorboard";
    });
  }

  std::string choose_run(const std::string& path,
                         const std::map<std::string, fs::file_time_type>& newest) {
    if (newest.size() == 1) return newest.begin()->first;
    // A run without a name of its own has that of its job.
    if (newest.contains(options_.choice.job)) return options_.choice.job;
    const std::string linked = linked_run(path);
    std::string chosen, why;
    if (!linked.empty() && newest.contains(linked)) {
      chosen = linked;
      why = "the one that its link `latest` names";
    } else {
      const auto last = std::max_element(newest.begin(), newest.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
      chosen = last->first;
      why = "the newest";
    }
    input_.trace.notes.push_back(
        fmt::format("{} holds {} runs; taking {}, {}; name its directory "
                    "to take another",
                    path, newest.size(), why, chosen));
    return chosen;
  }

  void load_process(const ProcessFiles& files) {
    known_.clear();  // sequence numbers are those of one process
    for (const std::string& path : files.traces) load_trace(path);
    std::set<uint32_t> dumped;  // windows that are over, of which the ring has nothing more to say
    for (const std::string& path : files.dumps) load_dump(path, dumped);
    for (const std::string& path : files.beside) {
      if (std::find(files.dumps.begin(), files.dumps.end(), path) == files.dumps.end()) {
        look_at_dump(path, dumped);
      }
    }
    std::vector<OpenRing> rings;
    for (const std::string& path : files.rings) {
      OpenRing ring;
      ring.path = path;
      ring.looked_at = now_ns();
      if (!read(path, ring.bytes)) continue;
      rings.push_back(std::move(ring));
    }
    for (OpenRing& ring : rings) {  // after the last move: the reader looks into `bytes`
      ring.reader = std::make_unique<RingReader>(ring.bytes, ring.path, input_.trace.problems);
    }
    std::set<uint32_t> completed;
    bool has_parts = false;
    const OpenRing* const ring = rings.empty() || !rings[0].reader->ok() ? nullptr : &rings[0];
    for (const std::string& path : parts_of(files, ring, dumped)) {
      std::error_code error;
      if (ring && fs::file_size(path, error) == 0 && !error) continue;  // all is in the ring
      has_parts |=
          load_part(path, ring, completed, dumped) || load_closed(path, files, ring, dumped);
    }
    const bool alone = files.dumps.empty() && !has_parts;
    for (OpenRing& ring : rings) {
      if (ring.reader->ok()) load_ring(ring, dumped, completed, alone);
    }
  }

  static std::string dump_of(std::string part) {
    part.resize(part.size() - (kPart.size() - kDump.size()));
    return part;
  }

  // Those that were found, and that of the ring's window, which may have begun since.
  static std::vector<std::string> parts_of(const ProcessFiles& files, const OpenRing* ring,
                                           const std::set<uint32_t>& dumped) {
    std::vector<std::string> parts = files.parts;
    const RingInfo info = ring ? ring->reader->info() : RingInfo();
    if (!info.window_open || dumped.contains(info.window)) return parts;
    const std::string dump = dump_beside(ring->path, info.window);
    std::string part = dump.substr(0, dump.size() - kDump.size()).append(kPart);
    if (std::find(parts.begin(), parts.end(), part) == parts.end() &&
        (is_there(part) || is_there(dump))) {
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // Reads a file and notes it; false (and a problem) where there is nothing.
  bool read(const std::string& path, std::string& bytes) {
    if (options_.progress) options_.progress(path, input_.files.size(), count_);
    std::string reason;
    if (!read_file(path, bytes, reason)) {
      problem(path, reason);
      return false;
    }
    input_.files.push_back({path, bytes.size()});
    if (bytes.empty()) {
      problem(path, path.ends_with(kRing) ? std::string(kNothingInRing) : "the file is empty");
    }
    return !bytes.empty();
  }

  void load_trace(const std::string& path) {
    if (options_.progress) options_.progress(path, input_.files.size(), count_);
    const KinetoFile file = read_kineto(path, input_.trace);
    input_.files.push_back({path, file.bytes, file.processes});
  }

  void load_dump(const std::string& path, std::set<uint32_t>& dumped) {
    const int64_t looked_at = now_ns();
    std::string bytes;
    if (!read(path, bytes)) return;
    if (is_ring(bytes)) {
      OpenRing ring{path, std::move(bytes), looked_at, nullptr};
      ring.reader = std::make_unique<RingReader>(ring.bytes, path, input_.trace.problems);
      if (ring.reader->ok()) load_ring(ring, {}, {}, true);
      return;
    }
    TraceBuilder builder(input_.trace, path, bytes.size());
    read_into(builder, path, bytes);
    if (builder.has_dump() && builder.has_summary()) dumped.insert(builder.window());
    std::string().swap(bytes);  // the events are laid out in finish(), which needs the memory
    finish(builder, path);
  }

  // A dump that is no input.
  void look_at_dump(const std::string& path, std::set<uint32_t>& dumped) {
    std::string bytes, reason;
    if (!read_file(path, bytes, reason) || is_ring(bytes)) return;
    Trace unused;
    TraceBuilder builder(unused, path, bytes.size());
    read_into(builder, path, bytes, unused.problems);
    if (builder.has_dump() && builder.has_summary()) dumped.insert(builder.window());
  }

  void read_into(TraceBuilder& builder, const std::string& path, std::string_view bytes) {
    read_into(builder, path, bytes, input_.trace.problems);
  }
  void read_into(TraceBuilder& builder, const std::string& path, std::string_view bytes,
                 std::vector<Problem>& problems) {
    read_chunks(bytes, path, {}, builder, problems);
    for (const auto& [sequence, records] : builder.ring_chunks()) {
      uint32_t& known = known_[sequence];
      known = std::max(known, records);
    }
  }

  void finish(TraceBuilder& builder, const std::string& path) {
    for (InputFile& file : input_.files) {
      if (file.path != path) continue;
      file.processes += builder.finish();
      const bool told = std::any_of(input_.trace.problems.begin(), input_.trace.problems.end(),
                                    [&](const Problem& problem) { return problem.file == path; });
      if (file.processes == 0 && !told) problem(path, "holds nothing that can be read");
    }
  }

  // A window that was never closed; the rest of its records are in the ring. False: its process has
  // closed it, or left it out, since it was found.
  bool load_part(const std::string& path, const OpenRing* ring, std::set<uint32_t>& completed,
                 std::set<uint32_t>& dumped) {
    std::string bytes;
    if (!read(path, bytes)) {
      const bool there = is_there(path);
      if (!there) input_.trace.problems.pop_back();
      return there;
    }
    TraceBuilder builder(input_.trace, path, bytes.size() + (ring ? ring->bytes.size() : 0));
    read_into(builder, path, bytes);
    if (builder.has_dump() && builder.has_summary()) {
      dumped.insert(builder.window());
    } else if (ring && builder.has_dump()) {
      const uint32_t window = builder.window();
      ByteBuffer rest;
      ring->reader->recover({window, false}, known_, rest);
      builder.mark_recovered(ring->looked_at);
      read_into(builder, path, {reinterpret_cast<const char*>(rest.data()), rest.size()});
      completed.insert(window);
      for (InputFile& file : input_.files) file.completed_other |= file.path == ring->path;
    }
    finish(builder, path);
    return true;
  }

  // What became of such a part: its window's dump. False: there is none.
  bool load_closed(const std::string& part, const ProcessFiles& files, const OpenRing* ring,
                   std::set<uint32_t>& dumped) {
    const std::string dump = dump_of(part);
    if (is_there(dump)) {  // a search may have seen both names
      const bool listed =
          std::find(files.dumps.begin(), files.dumps.end(), dump) != files.dumps.end();
      if (!listed) load_dump(dump, dumped);
      return true;
    }
    const uint32_t window = ring ? ring->reader->info().window : 0;
    // An early one that was left out: the ring has no more than a piece of it.
    if (ring && dump == dump_beside(ring->path, window)) dumped.insert(window);
    return false;
  }

  void load_ring(const OpenRing& ring, const std::set<uint32_t>& dumped,
                 const std::set<uint32_t>& completed, bool alone) {
    const std::string& path = ring.path;
    const RingInfo info = ring.reader->info();
    std::vector<uint32_t> windows;
    if (info.window_open && !dumped.contains(info.window)) {
      windows.push_back(info.window);
    } else if (alone || info.memory_log) {
      // Between windows, or before the first: header and step log are left, and what was allocated.
      windows.push_back(info.had_window ? info.window + 1 : info.window);
      if (!info.memory_log) {
        input_.trace.notes.push_back(fmt::format(
            "{}: no window {} when the process was killed, or is so far; it tells steps alone",
            path, info.had_window ? "was open" : "had begun"));
      }
    }
    for (const uint32_t window : windows) {
      if (completed.contains(window)) continue;
      ByteBuffer chunks;
      ring.reader->recover({window, true}, known_, chunks);
      TraceBuilder builder(input_.trace, path, ring.bytes.size());
      const std::string_view view(reinterpret_cast<const char*>(chunks.data()), chunks.size());
      builder.mark_recovered(ring.looked_at);
      read_into(builder, path, view);
      finish(builder, path);
    }
  }

  Input& input_;
  const InputOptions& options_;
  std::map<std::string, ProcessFiles> groups_;
  std::vector<std::string> order_;
  std::set<std::string> seen_;
  KnownChunks known_;
  size_t count_ = 0;
};

// The same rank twice in the same window: two runs, whose figures would be taken as one's.
void note_mixed_runs(Trace& trace) {
  std::map<std::pair<int32_t, uint32_t>, std::set<std::string>> runs;       // by rank and window
  std::map<std::pair<std::string, uint32_t>, std::set<std::string>> files;  // of outside traces
  for (const Process& process : trace.processes) {
    const dump::Header& header = process.header;
    if (process.source == Source::kineto) {
      const std::string who = header.rank() >= 0 ? fmt::format("rank {}", header.rank())
                                                 : fmt::format("process {}", header.pid());
      files[{who, header.window()}].insert(process.path);
    }
    if (!process.has_header || header.run().empty()) continue;
    runs[{header.rank(), header.window()}].insert(header.run());
  }
  for (const auto& [place, names] : files) {
    if (names.size() < 2) continue;
    trace.notes.push_back(fmt::format(
        "{} traces are of {} ({}, {}{}), taken as one run; compare runs with gpuprof diff",
        names.size(), place.first, *names.begin(), *std::next(names.begin()),
        names.size() > 2 ? ", ..." : ""));
    return;
  }
  for (const auto& [place, names] : runs) {
    if (names.size() < 2) continue;
    trace.notes.push_back(fmt::format(
        "these are dumps of {} runs ({}, {}{}), taken as one; compare runs with gpuprof diff",
        names.size(), *names.begin(), *std::next(names.begin()), names.size() > 2 ? ", ..." : ""));
    return;
  }
}

}  // namespace

Input load_input(const std::vector<std::string>& paths, const InputOptions& options) {
  Input input;
  Loader loader(input, options);
  for (const std::string& path : paths) loader.add(path);
  const JobChoice& choice = options.choice;
  loader.load(paths.size() == 1 || !choice.job.empty() || !choice.attempt.empty());
  note_mixed_runs(input.trace);
  return input;
}

}  // namespace gpuprof
