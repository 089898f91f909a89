// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/assembler.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "formats/kineto_reader/links.h"
#include "formats/trace/trace_join.h"

namespace gpuprof::kineto {
namespace {

constexpr int64_t kLatest = int64_t{1} << 62;
constexpr int64_t kOurRowStride = 10'000'000;     // our exports: further rows of one thread
constexpr int64_t kOurOtherRows = 3'000'000'000;  // and rows that are no thread's

int64_t add_limited(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) sum = b > 0 ? kLatest : 0;
  return std::clamp<int64_t>(sum, 0, kLatest);
}

bool is_negative(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? b < 0 : sum < 0;
}

bool is_frame_kind(Kind kind) { return kind == Kind::python_function || kind == Kind::module; }

bool is_thread_kind(Kind kind) {
  return !is_gpu_kind(kind) && !is_frame_kind(kind) && kind != Kind::other && kind != Kind::instant;
}

// "python" of "thread 123 (python)", as Kineto names threads.
std::string_view bare_thread_name(std::string_view name) {
  const size_t open = name.find(" (");
  const bool usual =
      name.starts_with("thread ") && open != std::string_view::npos && name.ends_with(')');
  return usual ? name.substr(open + 2, name.size() - open - 3) : name;
}

// "python train.py" of "rank 0: python train.py (host)", as process_title() makes it.
std::string_view program_of_title(std::string_view title, const dump::Header& header) {
  const std::string rank = fmt::format("rank {}: ", header.rank());
  const std::string host = fmt::format(" ({})", header.host());
  if (title.starts_with(rank)) title.remove_prefix(rank.size());
  if (title.ends_with(host)) title.remove_suffix(host.size());
  return title;
}

}  // namespace

std::vector<StringIndex> Assembler::intern_texts(const Block& block) {
  std::vector<StringIndex> texts(block.texts.size());
  for (uint32_t i = 0; i < texts.size(); ++i) texts[i] = trace_.strings.intern(block.texts[i]);
  return texts;
}

std::vector<ShapeIndex> Assembler::intern_shapes(const Block& block,
                                                 const std::vector<StringIndex>& texts) {
  std::vector<ShapeIndex> shapes;
  shapes.reserve(block.shapes.size());
  for (Shape shape : block.shapes) {
    for (StringIndex* text : {&shape.name, &shape.detail, &shape.label, &shape.input_dims,
                              &shape.input_types, &shape.call_stack, &shape.hierarchy, &shape.args,
                              &shape.group, &shape.group_description, &shape.group_ranks}) {
      *text = texts[number(*text)];
    }
    shapes.push_back(trace_.shapes.intern(shape));
  }
  return shapes;
}

std::vector<uint32_t> Assembler::intern_rows(const Block& block,
                                             const std::vector<StringIndex>& texts) {
  std::vector<uint32_t> rows;
  rows.reserve(block.rows.size());
  for (Row row : block.rows) {
    row.pid_text = number(texts[row.pid_text]);
    row.tid_text = number(texts[row.tid_text]);
    if (row.pid_text) labelled_.read(row, trace_.strings[static_cast<StringIndex>(row.pid_text)]);
    rows.push_back(row_numbers_(row));
  }
  row_events_.resize(rows_.size());
  return rows;
}

int64_t Assembler::lag_of(const ProcessParts& parts) const {
  int64_t lag = 0;
  for (const uint32_t i : parts.rows) lag = std::max(lag, file_pids_.lag(rows_[i]));
  return lag;
}

// Sorted first where rows are not in order within the block, so that it adds one run at most to
// each row: where ranges are written as they end, many are earlier than the one before.
void Assembler::add_events(const Block& block, const std::vector<ShapeIndex>& shapes,
                           const std::vector<uint32_t>& rows) {
  const auto first_extra = static_cast<uint32_t>(extras_.size() - 1);
  const auto add = [&](BlockEvent event) {
    RowEvents& row = row_events_[rows[event.row]];
    const Shape& shape = block.shapes[number(event.shape)];
    const Kind kind = shape.kind;
    row.calls = row.calls || is_thread_kind(kind);
    row.frames = row.frames || is_frame_kind(kind);
    row.works = row.works || (is_gpu_kind(kind) && kind != Kind::gpu_annotation);
    row.waits = row.waits || (kind == Kind::sync && (shape.flags & kFlagDriver));
    event.shape = shapes[number(event.shape)];
    if (event.extra) event.extra += first_extra;
    row.events.add(event);
  };
  std::vector<const BlockEvent*> last(block.rows.size());
  bool in_order = true;
  for (const BlockEvent& event : block.events) {
    const BlockEvent*& before = last[event.row];
    in_order = in_order && !(before && is_earlier(event, *before));
    before = &event;
  }
  if (in_order) {
    for (const BlockEvent& event : block.events) add(event);
    return;
  }
  std::vector<const BlockEvent*> sorted;
  sorted.reserve(block.events.size());
  for (const BlockEvent& event : block.events) sorted.push_back(&event);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const BlockEvent* a, const BlockEvent* b) { return is_earlier(*a, *b); });
  for (const BlockEvent* event : sorted) add(*event);
}

void Assembler::add(const Block& block) {
  const std::vector<StringIndex> texts = intern_texts(block);
  const std::vector<ShapeIndex> shapes = intern_shapes(block, texts);
  const std::vector<uint32_t> rows = intern_rows(block, texts);
  file_pids_.add(block, rows, rows_);
  add_events(block, shapes, rows);
  for (size_t i = 1; i < block.extras.size(); ++i) {
    extras_.push_back(block.extras[i]);
    extras_.back().args = texts[number(block.extras[i].args)];
  }
  for (FlowEnd flow : block.flows) {
    flow.row = rows[flow.row];
    flow.category = number(texts[flow.category]);
    flows_.push_back(flow);
  }
  for (RowFact fact : block.facts) {
    fact.row = rows[fact.row];
    fact.text = number(texts[fact.text]);
    facts_.push_back(fact);
  }
  for (RowStep step : block.steps) {
    step.row = rows[step.row];
    steps_.push_back(step);
  }
  for (CounterPoint point : block.counters) {
    point.row = rows[point.row];
    for (uint32_t* text : {&point.name, &point.key, &point.category}) *text = number(texts[*text]);
    counters_.push_back(point);
  }
  span_begin_ = std::min(span_begin_, block.span_begin);
  span_end_ = std::max(span_end_, block.span_end);
  for (size_t i = 0; i < kFaults; ++i) {
    const FaultCount& fault = block.faults[i];
    if (fault.count) note(faults_, static_cast<Fault>(i), fault.first, fault.count);
  }
}

std::string Assembler::row_text(const Row& row) const {
  const auto part = [this](uint32_t text, int64_t number) {
    return text ? std::string(trace_.strings[static_cast<StringIndex>(text)])
                : std::to_string(number);
  };
  return part(row.pid_text, row.pid) + " " + part(row.tid_text, row.tid);
}

void Assembler::read_facts() {
  std::map<std::tuple<int64_t, int64_t, uint32_t, uint32_t>, uint32_t> threads;
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.type != LaneType::thread || row_events_[i].events.empty()) continue;
    threads.emplace(std::tuple(row.pid, row.tid, row.pid_text, row.tid_text), i);
  }
  for (const RowFact& fact : facts_) {
    const Row& row = rows_[fact.row];
    const auto text = std::string(trace_.strings[static_cast<StringIndex>(fact.text)]);
    if (fact.what == RowFact::thread_name || fact.what == RowFact::thread_sort) {
      const auto at = threads.find(std::tuple(row.pid, row.tid, row.pid_text, row.tid_text));
      if (at == threads.end()) continue;
      RowEvents& events = row_events_[at->second];
      if (fact.what == RowFact::thread_name) events.name = text;
      if (fact.what == RowFact::thread_sort) events.sort_index = fact.number;
    } else if (!row.pid_text) {
      GpuFacts& facts = process_facts_[row.pid];
      if (fact.what == RowFact::process_name) facts.title = text;
      if (fact.what == RowFact::process_label) facts.label = text;
    }
  }
}

// Kineto writes no context of annotations on a stream (GpuUserEventMap in libkineto's
// CuptiActivityProfiler.cpp): theirs is that of the work there, of several the one with most.
void Assembler::complete_contexts() {
  using Stream =
      std::tuple<int64_t, uint32_t, uint32_t, uint32_t>;   // pid, its text, device, stream
  std::map<Stream, std::pair<size_t, uint32_t>> contexts;  // events of it, and which
  const auto stream_of = [](const Row& row) {
    return Stream(row.pid, row.pid_text, row.device, row.stream);
  };
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].type != LaneType::stream || !row_events_[i].works) continue;
    auto& most = contexts[stream_of(rows_[i])];
    const size_t count = row_events_[i].events.size();
    if (count > most.first) most = {count, rows_[i].context};
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.type != LaneType::stream || row_events_[i].works || row.context) continue;
    const auto found = contexts.find(stream_of(row));
    if (found != contexts.end()) row.context = found->second.second;
  }
}

// Host processes are those whose threads call or run something. Python functions alone make none:
// PyTorch writes process 0 and thread 0 for those of a thread that it has not seen call anything
// (torch/csrc/profiler/collection.cpp).
void Assembler::choose_processes(const TopLevel& top) {
  std::set<int64_t> gpus;
  std::map<int64_t, size_t> hosts, of_frames;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.pid_text || row_events_[i].events.empty()) continue;
    if (row.type == LaneType::stream || row.type == LaneType::device) gpus.insert(row.pid);
    const bool numbers = !row.tid_text && LabelledPids::is_process(row.pid);
    if (row.type != LaneType::thread || !numbers) continue;
    const bool runs =
        row_events_[i].calls || (row_events_[i].frames && process_facts_[row.pid].label == "CPU");
    if (runs) {
      hosts[row.pid] += row_events_[i].events.size();
    } else if (row_events_[i].frames) {
      of_frames[row.pid] += row_events_[i].events.size();
    }
  }
  if (hosts.empty()) hosts = std::move(of_frames);
  if (hosts.empty()) {
    for (const auto& [pid, facts] : process_facts_) {
      const bool cpu = facts.label == "CPU" && pid >= 0 && pid < Shape::kAbsent;
      if (cpu && hosts.empty()) hosts[pid] = 0;
    }
  }
  for (const auto& [pid, count] : hosts) pids_.push_back(pid);
  if (pids_.empty()) pids_.push_back(top.header.pid());
  std::stable_sort(pids_.begin(), pids_.end(),
                   [&](int64_t a, int64_t b) { return hosts[a] > hosts[b]; });
  choose_gpus(gpus);
  std::unordered_map<int64_t, uint32_t> places;  // in pids_
  for (uint32_t i = 0; i < pids_.size(); ++i) places.emplace(pids_[i], i);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.pid_text) continue;
    const auto gpu = gpus_.find(row.pid);
    const auto host = places.find(row.pid);
    if (row.type != LaneType::thread && gpu != gpus_.end()) {
      row_events_[i].process = gpu->second;
    } else if (host != places.end()) {
      row_events_[i].process = host->second;
    }
  }
  place_host_waits();
}

// Kineto writes an XPU's waits of the host in process -1, in the row of the thread that waits, and
// beside the driver's calls if it records those, too.
void Assembler::place_host_waits() {
  constexpr int64_t kNoProcess = -1;
  std::unordered_map<int64_t, uint32_t> threads;  // by tid: row, the first in a host process
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const bool numbers = !row.pid_text && !row.tid_text;
    if (row.type == LaneType::thread && numbers && row_events_[i].calls && is_host(row.pid)) {
      threads.emplace(row.tid, i);
    }
  }
  for (uint32_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.type != LaneType::thread || row.pid_text || row.pid != kNoProcess) continue;
    const auto thread = row.tid_text ? threads.end() : threads.find(row.tid);
    if (thread == threads.end()) continue;
    row_events_[i].process = row_events_[thread->second].process;
    row_events_[i].said = row_events_[i].waits && row_events_[thread->second].waits;
  }
}

// A GPU's rows belong to the process whose calls have their correlation ids. In Kineto's traces,
// and ours, they also have its name, which several may have.
void Assembler::choose_gpus(const std::set<int64_t>& gpus) {
  constexpr size_t kMost = 1024;  // processes of a job, which are compared with each other
  bool told = true;
  std::unordered_map<std::string_view, uint32_t> titles;  // of the first that is called so
  for (uint32_t i = 0; i < pids_.size(); ++i) {
    const std::string_view title = process_facts_[pids_[i]].title;
    if (!title.empty()) titles.emplace(title, i);
  }
  for (const int64_t pid : gpus) {
    if (pids_.size() <= kMost && gpus.size() <= kMost) {
      gpus_[pid] = owner_of(pid, told);
    } else {
      const auto same = titles.find(process_facts_[pid].title);
      gpus_[pid] = same == titles.end() ? 0 : same->second;
    }
  }
  if (told) return;
  trace_.problems.push_back(
      {path_, 0,
       "holds several ranks whose correlation ids are the same: which GPU work is whose is not "
       "known, and the first has it all; name the ranks' files"});
  trace_.problems.back().sums_up = true;
}

uint32_t Assembler::owner_of(int64_t gpu, bool& told) const {
  const auto title = [this](int64_t pid) {
    const auto facts = process_facts_.find(pid);
    return facts == process_facts_.end() ? std::string_view() : facts->second.title;
  };
  std::vector<std::pair<uint32_t, size_t>> hosts;  // of its label, and how many ids they share
  size_t most = 0;
  for (uint32_t i = 0; i < pids_.size(); ++i) {
    if (LabelledPids::label_of(pids_[i]) != LabelledPids::label_of(gpu)) continue;
    hosts.emplace_back(i, file_pids_.common(gpu, pids_[i]));
    most = std::max(most, hosts.back().second);
  }
  std::erase_if(hosts, [&](const auto& host) { return 2 * host.second < most; });
  const auto named = [&](const auto& host) {
    const std::string_view own = title(pids_[host.first]);
    return !own.empty() && own == title(gpu);
  };
  const auto first = std::find_if(hosts.begin(), hosts.end(), named);
  const bool one = hosts.size() == 1 || std::count_if(hosts.begin(), hosts.end(), named) == 1;
  told = told && (one || most == 0);
  return hosts.empty() ? 0 : first == hosts.end() ? hosts[0].first : first->first;
}

// A file may have as many processes as rows: each goes through what is its own.
void Assembler::divide() {
  parts_.resize(pids_.size());
  lane_of_row_.assign(rows_.size(), UINT32_MAX);
  for (uint32_t i = 0; i < rows_.size(); ++i) parts_[row_events_[i].process].rows.push_back(i);
  for (uint32_t i = 0; i < flows_.size(); ++i) {
    parts_[row_events_[flows_[i].row].process].flows.push_back(i);
  }
  for (uint32_t i = 0; i < steps_.size(); ++i) {
    parts_[row_events_[steps_[i].row].process].steps.push_back(i);
  }
  for (uint32_t i = 0; i < counters_.size(); ++i) {
    const Row& row = rows_[counters_[i].row];
    const auto gpu = row.pid_text ? gpus_.end() : gpus_.find(row.pid);
    const uint32_t owner = gpu == gpus_.end() ? row_events_[counters_[i].row].process : gpu->second;
    parts_[owner].counters.push_back(i);
  }
}

bool Assembler::is_host(int64_t pid) const {
  return std::find(pids_.begin(), pids_.end(), pid) != pids_.end();
}

Lane Assembler::lane_of(const Row& row, const RowEvents& events, uint32_t count, bool ours) {
  Lane lane{};
  lane.type = row.type;
  lane.sort_index = events.sort_index;
  switch (row.type) {
    case LaneType::stream:
      lane.context = row.context;
      lane.stream = row.stream;
      [[fallthrough]];
    case LaneType::device: lane.device = row.device; break;
    case LaneType::thread: {
      int64_t thread = row.tid;
      const bool other = ours && thread >= kOurOtherRows;
      if (ours && thread >= kOurRowStride) thread %= kOurRowStride;
      const bool numbers =
          !other && !row.pid_text && !row.tid_text && thread >= 0 && thread < Shape::kAbsent;
      const bool of_gpu = gpus_.contains(row.pid) && !events.calls;
      const bool of_nobody = events.frames && !events.calls && !is_host(row.pid);
      if (numbers && !of_gpu && !of_nobody && !events.said) {
        lane.thread_id = static_cast<uint32_t>(thread);
        lane.thread_name = bare_thread_name(events.name);
      } else {
        lane.type = LaneType::other;
        lane.thread_id = count;
        lane.thread_name = !events.name.empty() ? events.name
                           : of_nobody          ? "Python, thread not known"
                                                : row_text(row);
      }
      break;
    }
    default: break;
  }
  if (ours) lane.sort_index = Lane::kUnsorted;
  return lane;
}

void Assembler::lay_out(const ProcessParts& parts, const TopLevel& top, Process& process) {
  using Key = std::tuple<LaneType, uint32_t, uint32_t, uint32_t, uint32_t>;
  std::map<Key, std::pair<Lane, std::vector<uint32_t>>> lanes;
  size_t total = 0;
  for (const uint32_t i : parts.rows) {
    if (row_events_[i].events.empty()) continue;
    total += row_events_[i].events.size();
    const Lane lane = lane_of(rows_[i], row_events_[i], i + 1, top.ours);
    auto& [known, rows] =
        lanes[{lane.type, lane.thread_id, lane.device, lane.context, lane.stream}];
    if (rows.empty()) known = lane;
    rows.push_back(i);
  }
  process.events = EventTable(total, trace_.shapes.size());
  if (pids_.size() == 1) process.extras = std::move(extras_);
  if (process.extras.empty()) process.extras.emplace_back();
  external_ids_ = {};
  place_of_extra_.clear();
  std::vector<EventTable::Writer> writers;
  EventTable::Writer& writer = writers.emplace_back(process.events, 0);
  for (auto& [key, entry] : lanes) {
    auto& [lane, rows] = entry;
    lane.first_event = static_cast<uint32_t>(writer.at());
    for (const uint32_t row : rows) {
      lane_of_row_[row] = static_cast<uint32_t>(process.lanes.size());
    }
    fill_lane(rows, top, process, writer);
    lane.event_count = static_cast<uint32_t>(writer.at()) - lane.first_event;
    process.lanes.push_back(std::move(lane));
  }
  process.events.finish(writers);
}

// The events of rows that are one lane; they are gone from the rows afterwards.
void Assembler::fill_lane(const std::vector<uint32_t>& rows, const TopLevel& top, Process& process,
                          EventTable::Writer& writer) {
  LaneEvents events;
  for (const uint32_t row : rows) events.add(std::exchange(row_events_[row].events, {}));
  while (const BlockEvent* const from = events.next()) {
    Event event;
    event.begin = add_limited(from->begin, top.base_nanoseconds);
    early_ += is_negative(from->begin, top.base_nanoseconds);
    event.end = std::max(event.begin, add_limited(from->end, top.base_nanoseconds));
    event.shape = from->shape, event.correlation = from->correlation;
    event.extra = extra_of(from->extra, process);
    if (from->external_id) external_ids_.set(writer.at(), from->external_id);
    writer.add(event, from->external_id != 0);  // which Links may put into an extra
  }
}

uint32_t Assembler::extra_of(uint32_t extra, Process& process) {
  if (!extra || pids_.size() == 1) return extra;
  const auto [at, fresh] =
      place_of_extra_.emplace(extra, static_cast<uint32_t>(process.extras.size()));
  if (fresh) process.extras.push_back(extras_[extra]);
  return at->second;
}

void Assembler::set_window(const TopLevel& top, Process& process) {
  int64_t begin = INT64_MAX, end = 0;
  if (span_begin_ <= span_end_) {
    begin = add_limited(span_begin_, top.base_nanoseconds);
    end = add_limited(span_end_, top.base_nanoseconds);
  }
  for (const Event& event : process.events) {
    begin = std::min(begin, event.begin);
    end = std::max(end, event.end);
  }
  process.window_begin = begin == INT64_MAX ? 0 : begin;
  process.window_end = std::max(process.window_begin, end);
}

// What a cut file lacks may be anywhere in as much time before its last work as its events come
// late. The window is what is whole.
void Assembler::end_before_gaps(int64_t lag, Process& process) {
  if (lag == 0) return;
  int64_t last = process.window_begin;
  for (const Event& event : process.events) {
    if (is_stream_work(trace_.shape(event).kind)) last = std::max(last, event.end);
  }
  process.window_end = std::max(process.window_begin, last - lag);
}

void Assembler::add_steps(const ProcessParts& parts, const TopLevel& top, Process& process) {
  for (const uint32_t i : parts.steps) {
    const RowStep& each = steps_[i];
    const int64_t begin = add_limited(each.step.begin, top.base_nanoseconds);
    const int64_t end = add_limited(each.step.end, top.base_nanoseconds);
    process.steps.push_back({each.step.step, begin, std::max(begin, end)});
  }
  std::stable_sort(process.steps.begin(), process.steps.end(),
                   [](const Step& a, const Step& b) { return a.begin < b.begin; });
}

void Assembler::add_counters(const ProcessParts& parts, const TopLevel& top, Process& process) {
  using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;
  std::map<Key, size_t> series;
  for (const uint32_t i : parts.counters) {
    const CounterPoint& point = counters_[i];
    const Row& row = rows_[point.row];
    const auto gpu = row.pid_text ? gpus_.end() : gpus_.find(row.pid);
    const uint32_t device =
        gpu == gpus_.end() ? Shape::kAbsent : static_cast<uint32_t>(std::max<int64_t>(row.pid, 0));
    const auto [at, fresh] = series.emplace(Key{point.name, point.key, device, row.pid_text},
                                            process.named_counters.size());
    if (fresh) {
      const auto text = [this](uint32_t i) {
        return std::string(trace_.strings[static_cast<StringIndex>(i)]);
      };
      std::string name =
          row.pid_text ? text(row.pid_text) + " " + text(point.name) : text(point.name);
      process.named_counters.push_back(
          {std::move(name), text(point.key), text(point.category), device, {}});
    }
    process.named_counters[at->second].points.push_back(
        {add_limited(point.time, top.base_nanoseconds), point.value});
  }
  for (NamedCounter& counter : process.named_counters) {
    std::stable_sort(counter.points.begin(), counter.points.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
}

// Of several windows, which are one here, the first that lacks a kind.
void Assembler::add_left_out(int64_t pid, const TopLevel& top, Process& process) {
  RecordingBudget& budget = process.budget;
  for (const LeftOutOf& each : top.left_out) {
    if (each.pid != pid || budget.left_out_of(each.left_out.kind)) continue;
    budget.allowed_pct = each.budget_pct;
    budget.left_out.push_back(each.left_out);
    budget.left_out.back().since = std::max(process.window_begin, each.left_out.since);
  }
}

Process Assembler::make_process(uint32_t index, const TopLevel& top, Completeness completeness) {
  Process process;
  process.path = path_;
  process.source = Source::kineto;
  process.completeness = completeness;
  process.has_header = true;
  process.header = top.header;
  process.metadata = top.metadata;
  process.distributed = top.distributed;
  const int64_t pid = pids_[index];
  process.header.set_pid(static_cast<uint32_t>(pid));
  // The file's own is that of one of them.
  if (LabelledPids::label_of(pid)) process.header.set_rank(labelled_.rank_of(pid));
  std::string_view title = process_facts_[pid].title;
  if (top.ours) title = program_of_title(title, top.header);
  if (!title.empty()) process.header.add_command(std::string(title));
  lay_out(parts_[index], top, process);
  set_window(top, process);
  if (completeness == Completeness::truncated) end_before_gaps(lag_of(parts_[index]), process);
  add_counters(parts_[index], top, process);
  add_steps(parts_[index], top, process);
  add_left_out(pid, top, process);
  return process;
}

std::vector<FlowEnd> Assembler::flows_of(const ProcessParts& parts, const TopLevel& top) const {
  std::vector<FlowEnd> out;
  for (const uint32_t i : parts.flows) {
    FlowEnd flow = flows_[i];
    if (lane_of_row_[flow.row] == UINT32_MAX) continue;
    flow.row = lane_of_row_[flow.row];
    flow.time = add_limited(flow.time, top.base_nanoseconds);
    out.push_back(flow);
  }
  return out;
}

size_t Assembler::finish(const TopLevel& top, Completeness completeness) {
  read_facts();
  complete_contexts();
  choose_processes(top);
  divide();
  for (uint32_t i = 0; i < pids_.size(); ++i) {
    Process process = make_process(i, top, completeness);
    Links links(trace_, process, std::move(external_ids_));
    join_process(trace_, process);
    links.join_operators();
    links.join_flows(flows_of(parts_[i], top));
    links.find_steps();
    process.summary.set_events(process.events.size());
    trace_.processes.push_back(std::move(process));
  }
  if (early_ > 0) {
    trace_.problems.push_back(
        {path_, 0,
         fmt::format("events that begin before 1970, read as beginning then: {}", early_)});
    trace_.problems.back().sums_up = true;
  }
  return pids_.size();
}

}  // namespace gpuprof::kineto
