// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "formats/core/names.h"
#include "tools/console.h"
#include "tools/report/host_text.h"
#include "tools/report/operator_text.h"
#include "tools/report/rank_text.h"
#include "tools/report/text_lines.h"
#include "tools/report/text_table.h"
#include "tools/report/verdict_parts.h"
#include "tools/report/which_steps.h"

namespace gpuprof {
namespace {

using namespace analysis;

class TextReport {
 public:
  TextReport(const Report& report, const TextOptions& options)
      : report_(report), options_(options), out_(options) {}

  // `most` lines at most. What does not fit goes by whole sentences; the last line is `more` then.
  std::string write_verdict(size_t most, std::string_view more) {
    const std::vector<VerdictPart> parts = verdict_parts(report_);
    heading();
    out_.loud(verdict_title());
    const size_t above = out_.text().size();
    for (const VerdictPart& part : parts) write_part(part);
    if (out_.count() <= most) return out_.take();
    out_.resize(above);
    size_t cause = 0;
    for (const VerdictPart& part : parts) {
      if (!fits(part, most - 1)) break;
      cause = part.cause;
    }
    const size_t left = report_.verdict.size() - std::min(cause, report_.verdict.size());
    if (left > 0) {
      out_.add(format_escaped("  {} more cause{}: {}\n", left, left == 1 ? "" : "s", more));
    } else {
      out_.add(format_escaped("  more: {}\n", more));
    }
    return out_.take();
  }

  std::string write() {
    heading();
    if (options_.tables_alone) {
      framework_tables();
      kernels();
      if (!listed_) out_.line("Nothing matches");
      footing();
      return out_.take();
    }
    findings("What ends the program, now or after more steps", true);
    if (report_.depth == Depth::all) {
      verdict();
      breakdown();
    }
    add_thread_states(out_, report_);
    kernels();
    framework_tables();
    copies();
    add_collectives(out_, report_, options_);
    add_collective_times(out_, report_, options_);
    calls("Waiting for the GPU", report_.tables.synchronizations, ShedKind::waits);
    calls("Allocation", report_.tables.allocations, ShedKind::calls);
    add_places(out_, report_, options_);
    add_python_lines(out_, report_, options_);
    add_worker_lines(out_, report_, options_);
    add_host_memory(out_, report_, options_);
    add_rank_speeds(out_, report_);
    add_pipeline(out_, report_);
    findings("Also", false);
    footing();
    return out_.take();
  }

 private:
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
      out_.loud(
          fmt::format("{} steps of a pipeline: {} each, {} data-parallel ranks, {} "
                      "stages",
                      in.steps, format_us(in.recorded_us), in.data_ranks, in.stages));
      return;
    }
    if (report_.steps.empty()) {
      out_.loud("No steps");
      return;
    }
    std::set<uint64_t> numbers;
    for (const StepRow& row : report_.steps) numbers.insert(row.anatomy.step);
    const bool ranked = report_.ranked();
    const size_t members = ranked ? report_.ranks : report_.processes.size();
    const std::string ranks = members < 2 ? std::string()
                                          : fmt::format(" {} {} {}", ranked ? "on" : "in", members,
                                                        ranked ? "ranks" : "processes");
    const char* const least = report_.utilization_is_least() ? "at least " : "";
    const std::string busy =
        report_.depth == Depth::all && report_.gpu_timed
            ? fmt::format(", GPU busy {}{:.1f} %", least, report_.gpu_utilization_pct)
            : std::string();
    if (report_.whole_windows) {
      out_.loud(fmt::format("No steps; as a whole{}: {}{}{}", ranks,
                            format_us(report_.step_time.mean_us),
                            report_.steps.size() > 1 ? " each" : "", busy));
      return;
    }
    std::string which = which_steps(numbers);
    if (which[0] == 's') which[0] = 'S';
    const bool several = report_.steps.size() > 1;
    if (has_finding(FindingKind::steps_found)) which += " (found from the order of GPU work)";
    if (has_finding(FindingKind::clock_steps)) which += kClockSteps;
    out_.loud(fmt::format("{}{}: {}{}{}", which, ranks, format_us(report_.step_time.mean_us),
                          several ? " on average" : "", busy));
    if (!several) return;
    out_.line("median {}, 95 of 100 within {}", format_us(report_.step_time.median_us),
              format_us(report_.step_time.p95_us));
  }

  std::string_view verdict_title() const {
    return report_.verdict.empty() ? "No verdict" : "Verdict";
  }

  void write_part(const VerdictPart& part) {
    out_.paragraph(part.text, part.indent, part.before, part.loud);
  }

  // Writes all of it, or as many of its sentences as end within `most` lines. False: not all.
  bool fits(VerdictPart part, size_t most) {
    const size_t before = out_.text().size();
    const size_t whole = part.text.size();
    for (;;) {
      write_part(part);
      if (out_.count() <= most) return part.text.size() == whole;
      out_.resize(before);
      const size_t end = last_sentence(part.text);
      if (end == 0) return false;
      part.text.resize(end);
    }
  }

  void verdict() {
    out_.title(verdict_title());
    for (const VerdictPart& part : verdict_parts(report_)) write_part(part);
  }

  void breakdown() {
    if (report_.steps.empty() || !report_.gpu_timed) return;
    out_.title(fmt::format("Where a {}'s time goes", report_.unit()));
    const std::string unknown =
        unknown_parts_text(unknown_parts(report_.left_out), !report_.left_out.kinds.empty());
    if (!unknown.empty()) out_.paragraph(unknown, 2);
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
    out_.line("  {:<16}{:>6.1f} %  {:<{}}  {}", name, percent,
              std::string(static_cast<size_t>(bars), '#'), room, fits ? note : "");
    if (!fits && !note.empty()) out_.paragraph(note, 4);
  }

  // Without calls nobody knows what the host did.
  bool has_calls() const {
    const analysis::Tables& tables = report_.tables;
    return tables.launches > 0 || !tables.synchronizations.empty() || !tables.allocations.empty() ||
           !report_.verdict.empty();
  }

  // What of it is the cause host_work, and what is not.
  void parts_of_other(double percent) {
    const double own = percent - report_.device_idle_pct;
    if (own >= 0.05 && has_calls() && is_known(Part::other, report_.left_out))
      out_.line("    {:<14}{:>6.1f} %", "host_work", own);
    if (report_.device_idle_pct < 0.05) return;
    const std::string why = "issued work did not begin, why is not recorded";
    const bool fits = kShareColumns + why.size() <= options_.width;
    out_.line("    {:<14}{:>6.1f} %  {}", "stalled_work", report_.device_idle_pct, fits ? why : "");
    if (!fits) out_.paragraph(why, 6);
  }

  void framework_tables() {
    const std::string why = why_not_grouped(report_);
    if (!why.empty()) out_.paragraph(why, 0);
    for (const auto& part : {operator_text, layer_text, memory_text}) {
      const std::string text = part(report_, options_);
      listed_ |= !text.empty();
      out_.add(text);
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

  void kernels() {
    const std::vector<const KernelRow*> rows = chosen_kernels();
    if (rows.empty()) return;
    listed_ = true;
    double all = 0;
    for (const KernelRow& row : report_.tables.kernels) all += row.total_us;
    out_.title("Kernels that took longest");
    TextTable table({"share", fmt::format("per {}", report_.unit()), "each", "name"},
                    options_.full_names ? 0 : options_.width);
    for (size_t i = 0; i < shown(rows.size()); ++i) {
      const KernelRow& row = *rows[i];
      table.row({all > 0 ? fmt::format("{:.1f}%", 100 * row.total_us / all) : std::string(),
                 fmt::format("{:.1f}", report_.per_unit(static_cast<double>(row.count))),
                 format_us(row.total_us / static_cast<double>(row.count)),
                 options_.full_names ? row.name : row.short_name});
    }
    out_.add(table.text());
    if (rows.size() > shown(rows.size()))
      out_.line("  and {} more: --top {} lists all", rows.size() - shown(rows.size()), rows.size());
  }

  void copies() {
    if (report_.tables.copies.empty()) return;
    out_.title("Copies");
    TextTable rows({a_unit(report_), "each", "GB/s", "copy"}, options_.width);
    for (const CopyRow& row : report_.tables.copies) {
      rows.row({count_per_unit(report_, row.count), time_each(row.total_us, row.count),
                fmt::format("{:.1f}", row.gigabytes_per_second()), row.name});
    }
    out_.add(rows.text());
  }

  void calls(std::string_view name, const std::vector<CallRow>& all, ShedKind kind) {
    if (all.empty()) return;
    out_.title(std::string(name) + not_whole_text(report_.left_out, kind));
    TextTable rows({a_unit(report_), "each", "call"}, options_.width);
    for (size_t i = 0; i < std::min<size_t>(5, all.size()); ++i) {
      rows.row({count_per_unit(report_, all[i].count), time_each(all[i].total_us, all[i].count),
                all[i].name});
    }
    out_.add(rows.text());
  }

  void findings(std::string_view name, bool ending) {
    bool any = false;
    for (const Finding& finding : report_.findings) {
      if (ends_program(finding.kind) != ending) continue;
      if (!any) out_.title(name);
      any = true;
      out_.paragraph("- " + finding.text, 2);
    }
  }

  bool has_finding(FindingKind kind) const {
    return std::any_of(report_.findings.begin(), report_.findings.end(),
                       [kind](const Finding& each) { return each.kind == kind; });
  }

  void footing() {
    std::string lost;
    for (size_t i = 0; i < report_.losses.size(); ++i) {
      if (!report_.losses[i]) continue;
      lost += fmt::format("{}{} {}", lost.empty() ? "" : ", ", loss_name(static_cast<Loss>(i)),
                          report_.losses[i]);
    }
    out_.line("");
    const std::string cost = report_.own_cost_pct ? fmt::format("{:.1f} %", *report_.own_cost_pct)
                                                  : std::string("not known");
    const bool more =
        has_finding(FindingKind::slower_recorded) || has_finding(FindingKind::profiler_time);
    out_.line("Profiler's own cost: {}{}. Lost: {}.", cost,
              more ? " for records and within CUPTI, more in all (see above)" : "",
              report_.losses_known ? (lost.empty() ? "nothing" : lost)
              : lost.empty()       ? "not known"
                                   : lost + ", and what is not known");
  }

  const Report& report_;
  const TextOptions options_;
  bool listed_ = false;  // any row of framework_tables() or kernels()
  TextLines out_;
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
