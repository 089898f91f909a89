// SPDX-License-Identifier: Apache-2.0
#include "tools/report/diff_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tools/console.h"
#include "tools/line_width.h"

namespace gpuprof {
namespace {

using namespace analysis;

constexpr size_t kShown = 12;
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

// A row of the table for people; of kernels that were fused or split each on a line of its own.
void append_row(const Change& change, std::string& out) {
  constexpr size_t kIndent = 40, kMostNamed = 6;
  const bool several = change.from.size() + change.to.size() > 2;
  out += fmt::format(
      "  {:>12} {:>12} {:>9}  {:<8} {}", format_us(change.base_us), format_us(change.new_us),
      change_text(change), change.kind,
      several ? std::string() : escaped(shorten(change.name, room_beside(49, line_width()))));
  while (out.back() == ' ') out.pop_back();
  out += '\n';
  if (!several) return;
  const auto list = [&](const std::vector<std::string>& names, std::string_view first) {
    for (size_t i = 0; i < std::min(kMostNamed, names.size()); ++i) {
      out += fmt::format("{:{}}{:<3}{}\n", "", kIndent, i ? "+" : first,
                         escaped(shorten(names[i], room_beside(kIndent + 3, line_width()))));
    }
    if (names.size() > kMostNamed) {
      out += fmt::format("{:{}}and {} more\n", "", kIndent, names.size() - kMostNamed);
    }
  };
  list(change.from, "");
  list(change.to, "->");
}

// Within `...` in a cell of a table: nothing ends either.
std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : escaped(text)) {
    if (c == '|') out += '\\';
    out += c == '`' ? '\'' : c;
  }
  return out;
}

std::string headline(const Diff& diff) {
  const MeanChange& step = diff.step_time;
  const bool noise = step.low_pct <= 0 && step.high_pct >= 0;
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
  return fmt::format("Steps take {} ({} before): {:.1f} % {} ({:+.1f} % to {:+.1f} %)",
                     format_us(step.other), format_us(step.base), std::abs(step.change_pct),
                     step.change_pct > 0 ? "longer" : "shorter", step.low_pct, step.high_pct);
}

}  // namespace

std::string gate_text(const DiffGate& gate) {
  if (!gate.regression) return "No regression";
  if (gate.fail_over_pct <= 0) return "Regression";
  return fmt::format("Regression: slower by more than {:g} %", gate.fail_over_pct);
}

DiffGate gate_of(const Diff& diff, double fail_over_pct) {
  return {fail_over_pct,
          diff.reason.empty() && diff.significant && diff.step_time.change_pct > fail_over_pct};
}

Json diff_json(const Diff& diff, const DiffGate& gate) {
  const MeanChange& step = diff.step_time;
  Json out = {{"schema", kDiffSchema},
              {"base_steps", diff.base_steps},
              {"new_steps", diff.new_steps},
              {"step_time",
               {{"base_us", rounded(step.base)},
                {"new_us", rounded(step.other)},
                {"change_pct", rounded(step.change_pct)},
                {"ci_low_pct", rounded(step.low_pct)},
                {"ci_high_pct", rounded(step.high_pct)},
                {"p", step.p},
                {"significant", diff.significant}}}};
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
    if (!change.from.empty()) {
      row["from"] = change.from;
      row["to"] = change.to;
    }
    out["changes"].push_back(std::move(row));
  }
  out["fail_over_pct"] = gate.fail_over_pct;
  out["regression"] = gate.regression;
  out["reason"] = diff.reason;
  return out;
}

std::string diff_text(const Diff& diff, const DiffGate& gate) {
  if (!diff.reason.empty()) return "No comparison: " + diff.reason + "\n";
  std::string out = headline(diff) + "\n";
  size_t shown = 0;
  for (const Change& change : diff.changes) {
    if (!change.significant || shown == kShown) break;
    if (shown++ == 0) {
      out += fmt::format("\nWhat changed, in a step\n  {:>12} {:>12} {:>9}  {:<8} {}\n", "before",
                         "now", "change", "kind", "name");
    }
    append_row(change, out);
  }
  if (!shown) out += "Nothing in a step changed beyond noise\n";
  return out + "\n" + gate_text(gate) + "\n";
}

std::string diff_markdown(const Diff& diff, const DiffGate& gate) {
  if (!diff.reason.empty()) return "**No comparison**: " + diff.reason + "\n";
  std::string out = fmt::format("**{}**\n\n{}\n", gate_text(gate), headline(diff));
  size_t shown = 0;
  for (const Change& change : diff.changes) {
    if (!change.significant || shown == kShown) break;
    if (shown++ == 0) out += "\n| kind | name | before | now | change |\n|---|---|--:|--:|--:|\n";
    const std::string name = markdown_cell(change.name);
    out += fmt::format("| {} | `{}` | {} | {} | {} |\n", change.kind, name,
                       format_us(change.base_us), format_us(change.new_us), change_text(change));
  }
  return out;
}

}  // namespace gpuprof
