// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "formats/core/names.h"
#include "formats/trace/heap.h"
#include "formats/trace/listing.h"
#include "formats/trace/names.h"
#include "tools/console.h"
#include "tools/report/operator_text.h"
#include "tools/report/text_table.h"
#include "tools/report/verdict_parts.h"

namespace gpuprof {
namespace {

using namespace analysis;

constexpr size_t kProseWidth = 100;

}  // namespace
// Escaped text, in bold on a terminal.
struct Bold {
  std::string text;
  bool colours;
};
}  // namespace gpuprof

template <>
struct fmt::formatter<gpuprof::Bold> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const gpuprof::Bold& bold, Context& context) const {
    return fmt::format_to(context.out(), "{}{}{}", bold.colours ? "\033[1m" : "", bold.text,
                          bold.colours ? "\033[0m" : "");
  }
};

namespace gpuprof {
namespace {

class TextReport {
 public:
  TextReport(const Report& report, const TextOptions& options)
      : report_(report), options_(options), colours_(options.colours) {}

  // `most` lines at most. What does not fit goes by whole sentences; the last line is `more` then.
  std::string write_verdict(size_t most, std::string_view more) {
    const std::vector<VerdictPart> parts = verdict_parts(report_);
    heading();
    line("{}", bold(verdict_title()));
    const size_t above = out_.size();
    for (const VerdictPart& part : parts) write_part(part);
    if (lines_of(out_) <= most) return std::move(out_);
    out_.resize(above);
    size_t cause = 0;
    for (const VerdictPart& part : parts) {
      if (!fits(part, most - 1)) break;
      cause = part.cause;
    }
    const size_t left = report_.verdict.size() - std::min(cause, report_.verdict.size());
    if (left > 0) {
      line("  {} more cause{}: {}", left, left == 1 ? "" : "s", more);
    } else {
      line("  more: {}", more);
    }
    return std::move(out_);
  }

  std::string write() {
    heading();
    if (options_.tables_alone) {
      framework_tables();
      kernels();
      if (!listed_) line("Nothing matches");
      footing();
      return std::move(out_);
    }
    findings("What ends the program, now or after more steps", true);
    if (report_.depth == Depth::all) {
      verdict();
      breakdown();
    }
    thread_states();
    kernels();
    framework_tables();
    copies();
    collectives();
    collective_times();
    calls("Waiting for the GPU", report_.tables.synchronizations, ShedKind::waits);
    calls("Allocation", report_.tables.allocations, ShedKind::calls);
    places();
    python_lines();
    worker_lines();
    host_memory();
    ranks();
    pipeline();
    findings("Also", false);
    footing();
    return std::move(out_);
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out_ += format_escaped(format, std::forward<Arguments>(arguments)...);
    while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    out_ += '\n';
  }
  // An argument of a line; escaped like the others before ours is put around it.
  Bold bold(std::string_view text) const { return {escaped(text), colours_}; }
  void title(std::string_view text) {
    out_ += '\n';
    line("{}", bold(text));
  }

  // Wrapped at spaces to the width, each line after `indent` columns: spaces, or, of the first one,
  // `before`. `loud`: in bold on a terminal.
  void paragraph(std::string_view text, size_t indent, std::string_view before = "",
                 bool loud = false) {
    const size_t width = std::min(options_.width, kProseWidth);
    std::string row;
    const auto end_row = [&] {
      const Bold shown{escaped(row), loud && colours_};
      line("{:<{}}{}", before, indent, shown);
      before = "";
      row.clear();
    };
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      if (!row.empty() && indent + row.size() + 1 + (end - at) > width) end_row();
      if (!row.empty()) row += ' ';
      row += text.substr(at, end - at);
      at = end + 1;
    }
    if (!row.empty()) end_row();
  }

  bool whole() const { return report_.whole_windows && !report_.pipeline; }
  std::string a_unit() const { return fmt::format("a {}", report_.unit()); }

  static size_t lines_of(std::string_view text) {
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  // Where the text ends without its last sentence; 0: it has no other.
  static size_t last_sentence(std::string_view text) {
    for (size_t at = text.rfind(". "); at != std::string_view::npos && at > 0;
         at = text.rfind(". ", at - 1)) {
      const std::string_view next = text.substr(at + 2, 1);
      if (next >= "A" && next <= "Z") return at + 1;
    }
    return 0;
  }

  void heading() {
    if (report_.pipeline && report_.depth == Depth::all) {
      const Pipeline& in = *report_.pipeline;
      line("{}", bold(fmt::format("{} steps of a pipeline: {} each, {} data-parallel ranks, {} "
                                  "stages",
                                  in.steps, format_us(in.recorded_us), in.data_ranks, in.stages)));
      return;
    }
    if (report_.steps.empty()) {
      line("{}", bold("No steps"));
      return;
    }
    std::set<uint64_t> numbers;
    for (const StepRow& row : report_.steps) numbers.insert(row.anatomy.step);
    const uint64_t first = *numbers.begin(), last = *numbers.rbegin();
    const std::string ranks =
        report_.ranks > 1 ? fmt::format(" on {} ranks", report_.ranks) : std::string();
    const std::string busy =
        report_.depth == Depth::all && report_.gpu_timed
            ? fmt::format(", GPU busy {}{:.1f} %", report_.unrecorded.empty() ? "" : "at least ",
                          report_.gpu_utilization_pct)
            : std::string();
    if (report_.whole_windows) {
      line("{}", bold(fmt::format("No steps; as a whole{}: {}{}{}", ranks,
                                  format_us(report_.step_time.mean_us),
                                  report_.steps.size() > 1 ? " each" : "", busy)));
      return;
    }
    const std::string which =
        first == last ? fmt::format("Step {}", first)
        : numbers.size() == last - first + 1
            ? fmt::format("Steps {} to {}", first, last)
            : fmt::format("{} of the steps {} to {}", numbers.size(), first, last);
    const bool several = report_.steps.size() > 1;
    line("{}", bold(fmt::format("{}{}: {}{}{}", which, ranks, format_us(report_.step_time.mean_us),
                                several ? " each" : "", busy)));
    if (!several) return;
    line("median {}, 95 of 100 within {}", format_us(report_.step_time.median_us),
         format_us(report_.step_time.p95_us));
  }

  std::string_view verdict_title() const {
    return report_.verdict.empty() ? "No verdict" : "Verdict";
  }

  void write_part(const VerdictPart& part) {
    paragraph(part.text, part.indent, part.before, part.loud);
  }

  // Writes all of it, or as many of its sentences as end within `most` lines. False: not all.
  bool fits(VerdictPart part, size_t most) {
    const size_t before = out_.size();
    const size_t whole = part.text.size();
    for (;;) {
      write_part(part);
      if (lines_of(out_) <= most) return part.text.size() == whole;
      out_.resize(before);
      const size_t end = last_sentence(part.text);
      if (end == 0) return false;
      part.text.resize(end);
    }
  }

  void verdict() {
    title(verdict_title());
    for (const VerdictPart& part : verdict_parts(report_)) write_part(part);
  }

  void breakdown() {
    if (report_.steps.empty() || !report_.gpu_timed) return;
    title(fmt::format("Where a {}'s time goes", report_.unit()));
    const std::string unknown = unknown_parts_text(unknown_parts(report_.left_out));
    if (!unknown.empty()) paragraph(unknown, 2);
    for (size_t i = 0; i < kParts; ++i) {
      const double percent = report_.breakdown_pct[i];
      if (percent < 0.05) continue;
      std::string note;
      if (i == 1 && report_.overlapped_pct[0] >= 0.05) {
        note = fmt::format("and {:.1f} % under compute", report_.overlapped_pct[0]);
      } else if (i == 2 && report_.overlapped_pct[1] >= 0.05) {
        note = fmt::format("and {:.1f} % under compute", report_.overlapped_pct[1]);
      }
      const double waited = report_.no_processor_pct[i];
      if (waited >= 0.05)
        note = fmt::format("{:.0f} % without a processor", 100 * waited / percent);
      share(part_name(static_cast<Part>(i)), percent, note);
      if (static_cast<Part>(i) == Part::other) parts_of_other(percent - waited);
    }
  }

  static constexpr size_t kShareColumns = 28;  // a part's name and per cent

  // A row with a bar; where the note does not fit beside it, it stands below.
  void share(std::string_view name, double percent, const std::string& note) {
    const size_t room = std::min<size_t>(24, options_.width - kShareColumns);
    const auto bars = std::lround(percent * static_cast<double>(room) / 100);
    const bool fits = kShareColumns + room + 2 + note.size() <= options_.width;
    line("  {:<16}{:>6.1f} %  {:<{}}  {}", name, percent,
         std::string(static_cast<size_t>(bars), '#'), room, fits ? note : "");
    if (!fits && !note.empty()) paragraph(note, 4);
  }

  // What of it is the cause host_work, and what is not.
  void parts_of_other(double percent) {
    const double own = percent - report_.device_idle_pct;
    if (own >= 0.05 && is_known(Part::other, report_.left_out))
      line("    {:<14}{:>6.1f} %", "host_work", own);
    if (report_.device_idle_pct < 0.05) return;
    const std::string why = "issued work did not begin, why is not recorded";
    const bool fits = kShareColumns + why.size() <= options_.width;
    line("    {:<14}{:>6.1f} %  {}", "stalled_work", report_.device_idle_pct, fits ? why : "");
    if (!fits) paragraph(why, 6);
  }

  void framework_tables() {
    for (const auto& part : {operator_text, layer_text, memory_text}) {
      const std::string text = part(report_, options_);
      listed_ |= !text.empty();
      out_ += text;
    }
  }

  // Those that the options choose.
  std::vector<const KernelRow*> chosen_kernels() const {
    std::vector<const KernelRow*> out;
    for (const KernelRow& row : report_.tables.kernels) {
      if (!options_.filter || std::regex_search(row.name, *options_.filter) ||
          std::regex_search(row.short_name, *options_.filter)) {
        out.push_back(&row);
      }
    }
    return out;
  }

  size_t shown(size_t count) const {
    return options_.top == 0 ? count : std::min(options_.top, count);
  }

  std::string per_unit(uint64_t count) const {
    return fmt::format("{:.1f}", report_.per_unit(static_cast<double>(count)));
  }
  static std::string each(double total_us, uint64_t count) {
    return format_us(total_us / static_cast<double>(std::max<uint64_t>(1, count)));
  }
  TextTable table(std::vector<std::string> titles) const {
    return {std::move(titles), options_.width};
  }

  void kernels() {
    const std::vector<const KernelRow*> rows = chosen_kernels();
    if (rows.empty()) return;
    listed_ = true;
    double all = 0;
    for (const KernelRow& row : report_.tables.kernels) all += row.total_us;
    title("Kernels that took longest");
    TextTable table({"share", fmt::format("per {}", report_.unit()), "each", "name"},
                    options_.full_names ? 0 : options_.width);
    for (size_t i = 0; i < shown(rows.size()); ++i) {
      const KernelRow& row = *rows[i];
      table.row({fmt::format("{:.1f}%", 100 * row.total_us / all),
                 fmt::format("{:.1f}", report_.per_unit(static_cast<double>(row.count))),
                 format_us(row.total_us / static_cast<double>(row.count)),
                 options_.full_names ? row.name : row.short_name});
    }
    out_ += table.text();
    if (rows.size() > shown(rows.size()))
      line("  and {} more: --top {} lists all", rows.size() - shown(rows.size()), rows.size());
  }

  void copies() {
    if (report_.tables.copies.empty()) return;
    title("Copies");
    TextTable rows = table({a_unit(), "each", "GB/s", "copy"});
    for (const CopyRow& row : report_.tables.copies) {
      rows.row({per_unit(row.count), each(row.total_us, row.count),
                fmt::format("{:.1f}", row.gigabytes_per_second()), row.name});
    }
    out_ += rows.text();
  }

  void collectives() {
    if (report_.tables.collectives.empty()) return;
    title("Collectives");
    TextTable rows = table({a_unit(), "each", "bytes", "collective"});
    for (const CollectiveRow& row : report_.tables.collectives) {
      rows.row(
          {per_unit(row.count), each(row.total_us, row.count),
           row.unsized ? "unknown" : format_bytes(row.bytes / std::max<uint64_t>(1, row.count)),
           row.group.empty() ? row.name : fmt::format("{} in {}", row.name, row.group)});
    }
    out_ += rows.text();
    groups();
  }

  // Of the threads that steps run on, the mean over ranks.
  void thread_states() {
    ThreadStates mean;
    double threads = 0;
    for (const ThreadStates& row : report_.thread_states) {
      if (!row.steps) continue;
      ++threads;
      mean.running_pct += row.running_pct;
      mean.waiting_pct += row.waiting_pct;
      mean.asleep_pct += row.asleep_pct;
      mean.covered_pct += row.covered_pct;
    }
    if (threads == 0) return;
    out_ += '\n';
    std::string text = fmt::format(
        "The thread that steps run on: running {:.1f} %, waiting for a processor {:.1f} %, asleep "
        "{:.1f} %",
        mean.running_pct / threads, mean.waiting_pct / threads, mean.asleep_pct / threads);
    if (mean.covered_pct / threads < 99.5) {
      text += fmt::format(" of {:.1f} % of the steps' time, from the first look at it to the last",
                          mean.covered_pct / threads);
    }
    paragraph(text, 0);
  }

  // Which ranks the groups are of that the program names alike.
  void groups() {
    constexpr size_t kShownGroups = 4;
    std::map<std::string, std::vector<std::string>> ranks;
    for (const GroupRow& row : report_.tables.process_groups) {
      if (row.ranks.empty()) continue;
      ranks[std::string(group_label(row.name, row.description))].push_back(row.ranks);
    }
    for (auto& [label, lists] : ranks) {
      line("  {}: ranks {}", label, names_of_some(lists, kShownGroups));
    }
  }

  // Of each call, and of each rank the mean.
  void collective_times() {
    const CollectiveTimes& times = report_.collective_times;
    if (times.matched == 0 && times.different == 0) return;
    title("Collectives across their ranks");
    const bool wide = options_.width >= kWide;
    const bool linked = std::any_of(times.rows.begin(), times.rows.end(), [](const auto& row) {
      return row.matched > 0 && row.peak.gbs > 0;
    });
    TextTable rows = table({"calls", "bytes", "transfer", "waits", wide ? "exposed" : "",
                            wide ? "GB/s" : "", "bus GB/s", linked ? "of link" : "", "collective"});
    std::set<std::string> links_known;
    size_t shown = 0;
    for (const CollectiveTimesRow& row : times.rows) {
      if (row.matched == 0 || ++shown > 8) continue;
      rows.row({fmt::format("{}", row.calls), format_bytes(row.bytes / row.matched),
                each(row.transfer_us, row.matched), each(row.waiting_us, row.matched),
                wide ? each(row.exposed_us, row.matched) : "",
                wide ? fmt::format("{:.1f}", row.algorithm_gbs) : "",
                fmt::format("{:.1f}", row.bus_gbs),
                row.peak.gbs > 0 ? fmt::format("{:.0f} %", 100 * row.bus_gbs / row.peak.gbs) : "",
                row.function + ", " + members_text(row)});
      if (row.peak.gbs > 0) links_known.insert(row.peak.link);
    }
    if (shown > 0) out_ += rows.text();
    for (const std::string& link : links_known) {
      line("  of link: NCCL is assumed to use {}, one way", link);
    }
    if (shown > 8) line("  and {} more in --format json", shown - 8);
    if (times.matched < times.calls) {
      line("  {} of {} calls were recorded on all their ranks; times are of these", times.matched,
           times.calls);
    }
    if (times.different > 0) {
      line(
          "  {} calls name another function or size on some rank: NCCL lets these hang, or gives "
          "wrong data",
          times.different);
    }
    links("rank", times.links);
    links("host", times.host_links);
    most_waiting(times.waits);
  }

  void links(std::string_view what, const std::vector<LinkRow>& rows) {
    if (rows.empty()) return;
    const auto link = [&](const LinkRow& row) {
      return fmt::format("{} {} to {}: {:.1f} GB/s", what, row.from, row.to, row.gbs());
    };
    if (rows.size() == 1) return line("  messages, {}", link(rows[0]));
    line("  fastest messages, {}; slowest, {}", link(rows.front()), link(rows.back()));
  }

  void most_waiting(const RankMatrix& matrix) {
    double most = 0;
    size_t who = 0, whom = 0;
    for (size_t i = 0; i < matrix.names.size(); ++i) {
      for (size_t j = 0; j < matrix.names.size(); ++j) {
        if (matrix.waits_us[i][j] <= most) continue;
        most = matrix.waits_us[i][j], who = i, whom = j;
      }
    }
    if (most <= 0) return;
    line("  most waiting: {} for {}, {} in the whole window", matrix.names[who], matrix.names[whom],
         format_us(most));
  }

  std::string not_whole(ShedKind kind) const { return not_whole_text(report_.left_out, kind); }

  void calls(std::string_view name, const std::vector<CallRow>& all, ShedKind kind) {
    if (all.empty()) return;
    title(std::string(name) + not_whole(kind));
    TextTable rows = table({a_unit(), "each", "call"});
    for (size_t i = 0; i < std::min<size_t>(5, all.size()); ++i) {
      rows.row({per_unit(all[i].count), each(all[i].total_us, all[i].count), all[i].name});
    }
    out_ += rows.text();
  }

  void places() {
    const std::vector<PlaceRow>& all = report_.operators.places;
    if (all.empty()) return;
    title("Lines of code that wait, allocate, copy or load data" + not_whole(ShedKind::stacks));
    TextTable rows = table({a_unit(), "each", "what for", "line"});
    for (size_t i = 0; i < std::min<size_t>(5, all.size()); ++i) {
      rows.row(
          {per_unit(all[i].count), each(all[i].total_us, all[i].count), all[i].kind, all[i].place});
    }
    out_ += rows.text();
  }

  static std::string line_text(const CodeLine& row) {
    return row.place() + (row.within.empty() ? "" : fmt::format(" (in {})", row.within));
  }

  void python_lines() {
    const HostSamples& samples = report_.host_samples;
    if (samples.lines.empty()) return;
    const double covered = 100 * report_.sampled_share();
    title((report_.gpu_timed ? "Code that ran while the GPU was idle"
                             : "Code that ran; when the GPU was idle is not known") +
          (covered < 90 ? fmt::format("; samples cover {:.0f} % of that time", covered) : "") +
          few_samples(samples.idle_samples) + not_whole(ShedKind::samples));
    TextTable rows = table({"share", a_unit(), "line"});
    for (size_t i = 0; i < std::min<size_t>(5, samples.lines.size()); ++i) {
      const HostLine& row = samples.lines[i];
      rows.row({fmt::format("{:.1f}%", 100 * row.idle_us / samples.idle_us),
                format_us(report_.per_unit(row.idle_us)), line_text(row)});
    }
    out_ += rows.text();
  }

  void worker_lines() {
    const WorkerLines& workers = report_.worker_lines;
    if (workers.workers == 0) return;
    title("Where data loader workers spend their time");
    line("  {} worker{}: make batches {:.0f} % of the time, on a CPU {:.0f} %", workers.workers,
         workers.workers == 1 ? "" : "s", workers.busy_pct, workers.cpu_pct);
    TextTable rows = table({"share", "line"});
    for (size_t i = 0; i < std::min<size_t>(5, workers.lines.size()); ++i) {
      const WorkerLine& row = workers.lines[i];
      rows.row({fmt::format("{:.1f}%", row.busy_pct), line_text(row)});
    }
    if (!rows.empty()) out_ += rows.text();
  }

  void host_memory() {
    const HostMemory& memory = report_.host_memory;
    if (memory.rows.empty()) return;
    title(fmt::format("Host memory allocated, by {} samples", memory.samples));
    TextTable rows = table({a_unit(), "calls " + a_unit(), "held", "by"});
    for (size_t i = 0; i < std::min<size_t>(5, memory.rows.size()); ++i) {
      const HostMemoryRow& row = memory.rows[i];
      rows.row({bytes_text(report_.per_unit(row.bytes)),
                fmt::format("{:.1f}", report_.per_unit(row.count)), bytes_text(row.held_bytes),
                row.place});
    }
    out_ += rows.text();
  }
  // Estimates may fall below 0 by what was rounded.
  static std::string bytes_text(double bytes) {
    return format_bytes(static_cast<uint64_t>(std::max(int64_t{0}, whole_number(bytes))));
  }

  void ranks() {
    if (report_.speeds.empty()) return;
    title("Ranks against the median one");
    line("  {:>4} {:>9} {:>9} {:>9} {:>16}", "rank", "kernels", "data", "host",
         "waits " + a_unit());
    for (const RankSpeed& speed : report_.speeds) {
      line("  {:>4} {:>8.2f}x {:>8.2f}x {:>8.2f}x {:>16}", speed.rank, speed.compute,
           speed.data_loading, speed.host, format_us(speed.waited_us));
    }
  }

  void pipeline() {
    if (!report_.pipeline) return;
    title("What explains the pipeline's slowdown");
    const Pipeline& in = *report_.pipeline;
    line("  slowest workers {:>6.1f} %   last stage {:>6.1f} %", 100 * in.worst_workers,
         100 * in.last_stage);
    for (const PipelineShare& row : in.stage_shares) {
      line("  {:<22}{:>6.1f} %  {:>6.2f}x", row.name, 100 * row.explains, row.factor);
    }
    for (const PipelineShare& row : in.kind_shares) {
      line("  {:<22}{:>6.1f} %", row.name, 100 * row.explains);
    }
  }

  void findings(std::string_view name, bool ending) {
    bool any = false;
    for (const Finding& finding : report_.findings) {
      if (ends_program(finding.kind) != ending) continue;
      if (!any) title(name);
      any = true;
      paragraph("- " + finding.text, 2);
    }
  }

  void footing() {
    std::string lost;
    for (size_t i = 0; i < report_.losses.size(); ++i) {
      if (!report_.losses[i]) continue;
      lost += fmt::format("{}{} {}", lost.empty() ? "" : ", ", loss_name(static_cast<Loss>(i)),
                          report_.losses[i]);
    }
    out_ += '\n';
    const std::string cost = report_.own_cost_pct ? fmt::format("{:.1f} %", *report_.own_cost_pct)
                                                  : std::string("not known");
    const bool slower =
        std::any_of(report_.findings.begin(), report_.findings.end(),
                    [](const Finding& each) { return each.kind == FindingKind::slower_recorded; });
    line("Profiler's own cost: {}{}. Lost: {}.", cost,
         slower ? " in its own code and CUPTI's, more in all (see above)" : "",
         report_.losses_known ? (lost.empty() ? "nothing" : lost)
         : lost.empty()       ? "not known"
                              : lost + ", and what is not known");
  }

  const Report& report_;
  const TextOptions options_;
  const bool colours_;
  bool listed_ = false;  // any row of framework_tables() or kernels()
  std::string out_;
};

}  // namespace

std::string report_text(const Report& report, const TextOptions& options) {
  return TextReport(report, options).write();
}

std::string verdict_text(const Report& report, const TextOptions& options, size_t most,
                         std::string_view more) {
  return TextReport(report, options).write_verdict(most, more);
}

}  // namespace gpuprof
