// SPDX-License-Identifier: Apache-2.0
#include "tools/report/diff_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "tools/console.h"

namespace gpuprof {
namespace {

using namespace analysis;

constexpr size_t kShown = 12;

std::string change_text(const Change& change) {
  if (change.gone) return "gone";
  if (change.fresh) return "new";
  return fmt::format("{:+.1f} %", change.change_pct);
}

std::string headline(const Diff& diff) {
  const MeanChange& step = diff.step_time;
  if (!diff.significant) {
    return fmt::format("Steps take {} ({} before): no change beyond noise ({:+.1f} % to {:+.1f} %)",
                       format_us(step.other), format_us(step.base), step.low_pct, step.high_pct);
  }
  return fmt::format("Steps take {} ({} before): {:.1f} % {} ({:+.1f} % to {:+.1f} %)",
                     format_us(step.other), format_us(step.base), std::abs(step.change_pct),
                     step.change_pct > 0 ? "longer" : "shorter", step.low_pct, step.high_pct);
}

std::string gate_text(const DiffGate& gate) {
  return gate.regression ? fmt::format("Regression: slower by more than {:g} %", gate.fail_over_pct)
                         : std::string("No regression");
}

}  // namespace

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
    out["changes"].push_back({{"kind", change.kind},
                              {"name", change.name},
                              {"base_us", rounded(change.base_us)},
                              {"new_us", rounded(change.new_us)},
                              {"change_pct", rounded(change.change_pct)},
                              {"significant", change.significant},
                              {"gone", change.gone},
                              {"new", change.fresh}});
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
    out += fmt::format("  {:>12} {:>12} {:>9}  {:<8} {}\n", format_us(change.base_us),
                       format_us(change.new_us), change_text(change), change.kind,
                       shorten(change.name, 33));
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
    std::string name = change.name;
    for (size_t at = 0; (at = name.find('|', at)) != std::string::npos; at += 2)
      name.insert(at, 1, '\\');
    out += fmt::format("| {} | `{}` | {} | {} | {} |\n", change.kind, name,
                       format_us(change.base_us), format_us(change.new_us), change_text(change));
  }
  return out;
}

}  // namespace gpuprof
