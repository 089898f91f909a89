// SPDX-License-Identifier: Apache-2.0
#include "tools/report/diff_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/analysis/short_names.h"
#include "tools/console.h"
#include "tools/report/report_json.h"
#include "tools/report/text_table.h"

namespace gpuprof {
namespace {

using namespace analysis;

constexpr size_t kShown = 8;  // of each kind
constexpr size_t kShownInMarkdown = 12;
constexpr double kListedOfStepPct = 5;
constexpr double kTimesPct = 1000;  // from there on percentages say less than a factor

// A part that was not there before has no percentage either.
bool is_new(const Change& change) {
  return change.fresh || (change.base_us == 0 && change.new_us > 0);
}

std::string change_text(const Change& change) {
  if (change.gone) return "gone";
  if (is_new(change)) return "new";
  if (change.change_pct >= kTimesPct) return fmt::format("x {:.0f}", 1 + change.change_pct / 100);
  return fmt::format("{:+.1f} %", change.change_pct);
}

// "name <<<8x1x1, 128x1x1>>>": a kernel and its launch shape.
std::string_view kernel_of(std::string_view key) { return key.substr(0, key.rfind(" <<<")); }

// Short names of all kernels of a comparison.
class KernelNames {
 public:
  KernelNames(const Diff& diff, bool full) : full_(full) {
    std::vector<std::string> names;
    for (const Change& change : diff.changes) {
      if (!is_kernel(change)) continue;
      if (change.from.empty()) names.emplace_back(kernel_of(change.name));
      for (const auto* const list : {&change.from, &change.to}) {
        for (const std::string& key : *list) names.emplace_back(kernel_of(key));
      }
    }
    names_ = short_names(names);
  }

  static bool is_kernel(const Change& change) { return change.kind.starts_with("kernel"); }

  std::string of(const std::string& key) const {
    const std::string_view kernel = kernel_of(key);
    const auto found = names_.find(kernel);
    if (full_ || found == names_.end()) return key;
    return found->second + key.substr(kernel.size());
  }

  // Of a change: "name", "old -> new", "A + B -> C".
  std::string of(const Change& change) const {
    if (!is_kernel(change)) return change.name;
    if (change.from.empty()) return of(change.name);
    return sum_of(change.from) + " -> " + sum_of(change.to);
  }

 private:
  std::string sum_of(const std::vector<std::string>& keys) const {
    std::string out;
    for (const std::string& key : keys) out += (out.empty() ? "" : " + ") + of(key);
    return out;
  }

  bool full_;
  std::map<std::string, std::string, std::less<>> names_;
};

double difference_of(const Change& change) { return std::abs(change.new_us - change.base_us); }

// What the text lists: what is beyond noise, and what may be noise but is large; that in brackets.
bool is_listed(const Change& change, const Diff& diff) {
  return change.significant ||
         difference_of(change) >= kListedOfStepPct / 100 * diff.step_time.base;
}

struct Section {
  std::string_view title, kind;  // kind: how it begins
};
constexpr Section kSections[] = {{"Parts of a step", "cause"},
                                 {"Kernels", "kernel"},
                                 {"Copies", "copy"},
                                 {"Collectives", "collective"},
                                 {"Operators", "operator"}};

// Of one kind, the largest difference first.
using Rows = std::vector<const Change*>;
Rows rows_of(const Diff& diff, std::string_view kind) {
  Rows out;
  for (const Change& change : diff.changes) {
    if (change.kind.starts_with(kind) && is_listed(change, diff)) out.push_back(&change);
  }
  std::stable_sort(out.begin(), out.end(), [](const Change* a, const Change* b) {
    return difference_of(*a) > difference_of(*b);
  });
  return out;
}

std::string table_of(const Rows& rows, const KernelNames& names, const DiffTextOptions& options) {
  TextTable table({"before", "now", "change", "name"}, options.full_names ? 0 : options.width);
  for (size_t i = 0; i < std::min(kShown, rows.size()); ++i) {
    const Change& change = *rows[i];
    const std::string text = change_text(change);
    table.row({format_us(change.base_us), format_us(change.new_us),
               change.significant ? text + " " : "(" + text + ")", names.of(change)});
  }
  if (rows.size() > kShown) {
    table.note(fmt::format("and {} more: --format html lists all", rows.size() - kShown));
  }
  return table.text();
}

std::string paragraph(std::string_view text, const DiffTextOptions& options) {
  std::string out;
  for (const std::string& line : wrapped(text, options.width)) out += line + "\n";
  return out;
}

// `text`: nothing ends it.
std::string markdown_code(std::string_view text) {
  std::string out = escaped(text);
  std::replace(out.begin(), out.end(), '`', '\'');
  return "`" + out + "`";
}

// The same in a cell of a table, which it does not end either.
std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : markdown_code(text)) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Text of a paragraph: it cannot end its line, and is neither Markdown, nor HTML, nor a mention.
std::string markdown_text(std::string_view raw) {
  const std::string text = escaped(raw);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool within_word =
        i > 0 && i + 1 < text.size() && is_word(text[i - 1]) && is_word(text[i + 1]);
    switch (c) {
      case '<': out += "&lt;"; break;
      case '&': out += "&amp;"; break;
      case '@': out += "@&#8203;"; break;                 // a space of no width
      case '_': out += within_word ? "_" : "\\_"; break;  // GPUPROF_BUDGET is no emphasis
      case '\\':
      case '`':
      case '*':
      case '[':
      case ']':
      case '~':
      case '$': out += {'\\', c}; break;
      default: out += c;
    }
  }
  return out;
}

// How much longer steps take, with its interval.
std::string change_text(const MeanChange& step) {
  return fmt::format("{:.1f} % {} ({:+.1f} % to {:+.1f} %)", std::abs(step.change_pct),
                     step.change_pct > 0 ? "longer" : "shorter", step.low_pct, step.high_pct);
}

std::string headline(const Diff& diff) {
  const MeanChange& step = diff.step_time;
  const bool noise = step.low_pct <= 0 && step.high_pct >= 0;
  if (!diff.significant && is_significant(diff.typical_step)) {
    return fmt::format(
        "A typical step takes {} ({} before): {}; a few steps are so long that the mean's change "
        "is "
        "not known ({:+.1f} % to {:+.1f} %)",
        format_us(diff.typical_step.other), format_us(diff.typical_step.base),
        change_text(diff.typical_step), step.low_pct, step.high_pct);
  }
  if (!diff.significant && !noise) {
    return fmt::format(
        "Steps take {} ({} before): too small a change to count ({:+.1f} % to "
        "{:+.1f} %)",
        format_us(step.other), format_us(step.base), step.low_pct, step.high_pct);
  }
  if (!diff.significant) {
    return fmt::format("Steps take {} ({} before): no change beyond noise ({:+.1f} % to {:+.1f} %)",
                       format_us(step.other), format_us(step.base), step.low_pct, step.high_pct);
  }
  return fmt::format("Steps take {} ({} before): {}", format_us(step.other), format_us(step.base),
                     change_text(step));
}

bool is_slower(const MeanChange& step, double fail_over_pct) {
  return is_significant(step) && step.change_pct > fail_over_pct;
}

std::vector<ShedKind> kinds_of(const Recording& side) {
  std::vector<ShedKind> out;
  for (const LeftOutKind& each : side.left_out.kinds) out.push_back(each.kind);
  return out;
}

// "operators; of a step allocation, other"
std::string not_compared_text(const Diff& diff) {
  std::string parts;
  for (const Part part : diff.parts_not_compared) {
    parts += (parts.empty() ? "of a step " : ", ") + std::string(part_name(part));
  }
  if (!diff.operators_not_compared) return parts;
  return "operators" + (parts.empty() ? "" : "; " + parts);
}

std::string cost_line(const Diff& diff) {
  if (!diff.without_recording) {
    const std::string_view side = diff.base.cost_pct ? "new" : "base";
    return fmt::format(
        "What recording took of {} is not known, nor how much of a change of step times it is",
        side);
  }
  return fmt::format(
      "Recording took {:.1f} % of base and {:.1f} % of new, as gpuprof counts it; without it steps "
      "take {}",
      *diff.base.cost_pct, *diff.other.cost_pct, change_text(*diff.without_recording));
}

}  // namespace

std::string gate_text(const DiffGate& gate) {
  if (gate.unknown) {
    return "Not known whether it is a regression: what recording took differs between the runs; "
           "record both with the same GPUPROF_BUDGET";
  }
  if (gate.not_excluded_pct > 0) {
    const std::string found =
        gate.fail_over_pct > 0 ? fmt::format("No slow-down of more than {:g} % is certain, but one",
                                             gate.fail_over_pct)
                               : "No regression beyond noise, but a slow-down";
    return fmt::format(
        "{} of {:.1f} % is not excluded: compare more steps, or runs (--more-base, "
        "--more-new)",
        found, gate.not_excluded_pct);
  }
  if (!gate.regression) return "No regression";
  if (gate.fail_over_pct <= 0) return "Regression";
  return fmt::format("Regression: slower by more than {:g} %", gate.fail_over_pct);
}

DiffGate gate_of(const Diff& diff, double fail_over_pct) {
  DiffGate out{fail_over_pct};
  if (!diff.reason.empty()) return out;
  out.regression =
      is_slower(diff.step_time, fail_over_pct) || is_slower(diff.typical_step, fail_over_pct);
  const MeanChange &mean = diff.step_time, &typical = diff.typical_step;
  const double open_pct = typical.p < 1 ? std::min(mean.high_pct, typical.high_pct) : mean.high_pct;
  if (!out.regression && open_pct > std::max(fail_over_pct, analysis::kStepFloorPct)) {
    out.not_excluded_pct = open_pct;
  }
  if (!diff.anything_left_out()) return out;
  // Between what is counted and the most that it may be, the change only goes one way.
  out.unknown = diff.without_most ? is_slower(*diff.without_most, fail_over_pct) != out.regression
                                  : kinds_of(diff.base) != kinds_of(diff.other);
  out.regression = out.regression && !out.unknown;
  return out;
}

std::vector<std::string> recording_lines(const Diff& diff) {
  std::vector<std::string> out;
  for (const auto& [name, side] : {std::pair("base", &diff.base), std::pair("new", &diff.other)}) {
    if (side->left_out.kinds.empty()) continue;
    out.push_back(
        fmt::format("Not recorded in {}, by GPUPROF_BUDGET: {}", name, describe(side->left_out)));
  }
  const std::string not_compared = not_compared_text(diff);
  if (!not_compared.empty()) {
    out.push_back("Not compared, since it needs what was not recorded: " + not_compared);
  }
  if (diff.anything_left_out()) out.push_back(cost_line(diff));
  return out;
}

std::vector<std::string> diff_notes(const Diff& diff) {
  std::vector<std::string> out;
  const std::string setup = describe(diff.setup);
  if (!setup.empty()) {
    out.push_back("The runs differ in more than the program, and steps may for that alone: " +
                  setup);
  }
  for (std::string& line : recording_lines(diff)) out.push_back(std::move(line));
  return out;
}

namespace {

Json setup_json(const std::vector<analysis::SetupDifference>& differences) {
  Json out = Json::array();
  for (const analysis::SetupDifference& each : differences) {
    out.push_back({{"name", setup_name(each.part)}, {"base", each.base}, {"new", each.other}});
  }
  return out;
}

Json step_time_json(const MeanChange& step, bool significant) {
  return {{"base_us", rounded(step.base)},          {"new_us", rounded(step.other)},
          {"change_pct", rounded(step.change_pct)}, {"ci_low_pct", rounded(step.low_pct)},
          {"ci_high_pct", rounded(step.high_pct)},  {"significant", significant}};
}

Json recording_json(const Recording& side) {
  return {{"left_out_kinds", left_out_json(side.left_out)},
          {"cost_pct", side.cost_pct ? Json(rounded(*side.cost_pct)) : Json(nullptr)}};
}

Json not_compared_json(const Diff& diff) {
  Json out = Json::array();
  if (diff.operators_not_compared) out.push_back({{"kind", "operator"}});
  for (const Part part : diff.parts_not_compared) {
    out.push_back({{"kind", "cause"}, {"name", part_name(part)}});
  }
  return out;
}

// Where a budget left something out.
void add_recording(const Diff& diff, Json& out) {
  const std::optional<MeanChange>& without = diff.without_recording;
  out["recording"] = {{"base", recording_json(diff.base)}, {"new", recording_json(diff.other)}};
  out["step_time_without_recording"] =
      without ? step_time_json(*without, is_significant(*without)) : Json(nullptr);
}

}  // namespace

Json diff_json(const Diff& diff, const DiffGate& gate) {
  const KernelNames names(diff, false);
  const bool compared = diff.reason.empty();
  Json out = {{"schema", kDiffSchema},
              {"base_steps", diff.base_steps},
              {"new_steps", diff.new_steps},
              {"step_time", nullptr},
              {"typical_step", nullptr}};
  if (compared) {
    const MeanChange& typical = diff.typical_step;
    out["step_time"] = step_time_json(diff.step_time, diff.significant);
    out["step_time"]["p"] = diff.step_time.p;
    out["typical_step"] = step_time_json(typical, is_significant(typical));
  }
  out["headline"] = compared ? headline(diff) : std::string();
  out["changes"] = Json::array();
  for (const Change& change : diff.changes) {
    Json row = {{"kind", change.kind},
                {"name", change.name},
                {"base_us", rounded(change.base_us)},
                {"new_us", rounded(change.new_us)},
                {"change_pct", rounded(change.change_pct)},
                {"significant", change.significant},
                {"gone", change.gone},
                {"new", is_new(change)}};
    if (KernelNames::is_kernel(change)) row["short_name"] = names.of(change);
    if (!change.from.empty()) {
      row["from"] = change.from;
      row["to"] = change.to;
    }
    out["changes"].push_back(std::move(row));
  }
  out["fail_over_pct"] = gate.fail_over_pct;
  const bool known = compared && !gate.unknown;
  out["regression"] = known ? Json(gate.regression) : Json(nullptr);
  out["not_excluded_pct"] = known ? Json(rounded(gate.not_excluded_pct)) : Json(nullptr);
  if (compared && diff.anything_left_out()) add_recording(diff, out);
  out["not_compared"] = not_compared_json(diff);
  out["setup"] = setup_json(diff.setup);
  out["notes"] = diff_notes(diff);
  out["reason"] = diff.reason;
  return out;
}

std::string diff_text(const Diff& diff, const DiffGate& gate, const DiffTextOptions& options) {
  if (!diff.reason.empty()) return "No comparison: " + diff.reason + "\n";
  const KernelNames names(diff, options.full_names);
  struct Part {
    std::string_view title;
    Rows rows;
  };
  std::vector<Part> parts;
  bool beyond = false, bracketed = false;
  for (const Section& section : kSections) {
    Part part{section.title, rows_of(diff, section.kind)};
    for (const Change* const change : part.rows) {
      beyond |= change->significant;
      bracketed |= !change->significant;
    }
    if (!part.rows.empty()) parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return difference_of(*a.rows.front()) > difference_of(*b.rows.front());
  });
  std::string out = paragraph(headline(diff), options);
  for (const std::string& each : diff_notes(diff)) out += paragraph(each, options);
  if (!beyond) {
    out += not_compared_text(diff).empty() ? "Nothing in a step changed beyond noise\n"
                                           : "Nothing that is compared changed beyond noise\n";
  }
  if (bracketed) out += "In brackets: changes that may be noise\n";
  for (const Part& part : parts) {
    out += fmt::format("\n{}, in a step\n{}", part.title, table_of(part.rows, names, options));
  }
  return out + "\n" + paragraph(gate_text(gate), options);
}

namespace {

// "base `runs/1`, new `runs/2`": a paragraph, or nothing.
std::string markdown_runs(const DiffRuns& runs) {
  std::string out;
  for (const auto& [side, names] : {std::pair("base", &runs.base), std::pair("new", &runs.other)}) {
    if (names->empty()) continue;
    out += fmt::format("{}{}", out.empty() ? "\n" : ", ", side);
    for (const std::string& name : *names) out += " " + markdown_code(name);
  }
  return out.empty() ? out : out + "\n";
}

}  // namespace

std::string diff_markdown(const Diff& diff, const DiffGate& gate, const DiffRuns& runs) {
  if (!diff.reason.empty())
    return "**No comparison**: " + markdown_text(diff.reason) + "\n" + markdown_runs(runs);
  std::string out =
      fmt::format("**{}**\n\n{}\n{}", gate_text(gate), headline(diff), markdown_runs(runs));
  for (const std::string& each : diff_notes(diff)) out += "\n" + markdown_text(each) + "\n";
  const KernelNames names(diff, false);
  size_t count = 0;
  for (const Change& change : diff.changes) {
    if (!change.significant || ++count > kShownInMarkdown) continue;
    if (count == 1) out += "\n| kind | name | before | now | change |\n|---|---|--:|--:|--:|\n";
    out += fmt::format("| {} | {} | {} | {} | {} |\n", change.kind, markdown_cell(names.of(change)),
                       format_us(change.base_us), format_us(change.new_us), change_text(change));
  }
  if (count > kShownInMarkdown) {
    out += fmt::format("\nand {} more: --format html lists all\n", count - kShownInMarkdown);
  }
  return out;
}

}  // namespace gpuprof
