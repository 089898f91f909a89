// SPDX-License-Identifier: Apache-2.0
#include "tools/report/diff_html.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "formats/trace/listing.h"
#include "tools/report/diff_output.h"
#include "tools/report/html_page.h"

namespace gpuprof {
namespace {

std::string steps_text(const char* figure, const Json& count) {
  const auto steps = count.get<size_t>();
  return fmt::format("{} of {} step{}", figure, steps, steps == 1 ? "" : "s");
}

std::string change_text(const Json& step) {
  const double change = step["change_pct"].get<double>();
  if (step["significant"].get<bool>()) {
    return fmt::format("{:.1f} % {}", std::abs(change), change > 0 ? "longer" : "shorter");
  }
  const bool noise =
      step["ci_low_pct"].get<double>() <= 0 && step["ci_high_pct"].get<double>() >= 0;
  return noise ? "none beyond noise" : "too small to count";
}

std::string verdict(const Json& diff) {
  if (!diff["reason"].get_ref<const std::string&>().empty()) {
    return fmt::format("No comparison: {}", html_text_of(diff["reason"]));
  }
  const Json& regression = diff["regression"];
  return gate_text({diff["fail_over_pct"].get<double>(), regression == true, regression.is_null(),
                    regression.is_null() ? 0 : diff["not_excluded_pct"].get<double>()});
}

// The mean's change, or, where only that of a typical step is known, that.
std::string figures(const Json& diff) {
  const bool by_typical = !diff["step_time"]["significant"].get<bool>() &&
                          diff["typical_step"]["significant"].get<bool>();
  const Json& step = diff[by_typical ? "typical_step" : "step_time"];
  const char* const figure = by_typical ? "median" : "mean";
  const std::string interval =
      fmt::format("{:+.1f} % to {:+.1f} % with 95 % confidence", step["ci_low_pct"].get<double>(),
                  step["ci_high_pct"].get<double>());
  return "<section id=\"figures\">\n" +
         html_figure("base", by_typical ? "Typical step before" : "Step time before",
                     us_text(step["base_us"]), steps_text(figure, diff["base_steps"])) +
         html_figure("new", by_typical ? "Typical step now" : "Step time now",
                     us_text(step["new_us"]), steps_text(figure, diff["new_steps"])) +
         html_figure("change", "Change", change_text(step), interval) + "</section>\n";
}

// What became of steps, what else differs between the runs, and what GPUPROF_BUDGET left out of
// them.
std::string notes(const Json& diff) {
  std::string out;
  const std::string headline = html_text_of(diff["headline"]);
  if (!headline.empty()) out += fmt::format("<p id=\"headline\">{}</p>", headline);
  if (!diff.contains("notes")) return out;
  for (const Json& each : diff["notes"]) out += fmt::format("<p>{}</p>", html_text_of(each));
  return out;
}

// "base <code>runs/1</code> <code>runs/2</code>", as HTML; empty: it is not known, or has no run.
std::string runs_html(const Json& diff, const char* side) {
  if (!diff.contains(side) || diff[side].empty()) return "";
  std::string out = side;
  for (const Json& run : diff[side]) out += fmt::format(" <code>{}</code>", html_text_of(run));
  return out;
}

// "NEW against BASE - gpuprof diff", as HTML.
std::string title(const Json& diff) {
  constexpr size_t kNamed = 2;
  std::string out;
  for (const char* const side : {"new", "base"}) {
    if (!diff.contains(side) || diff[side].empty()) continue;
    std::vector<std::string> names;
    for (const Json& run : diff[side]) names.push_back(html_text_of(run));
    out += (out.empty() ? "" : " against ") + names_of_some(names, kNamed);
  }
  return out + (out.empty() ? "" : " - ") + "gpuprof diff";
}

}  // namespace

std::string diff_html(const Json& diff) {
  HtmlPage page{"gpuprof diff", {}, {}, {}, dump_json(diff), false};
  const Json clean = Json::parse(page.data);  // its texts are UTF-8
  const bool compared = clean["reason"].get_ref<const std::string&>().empty();
  page.title = title(clean);
  for (const char* const side : {"base", "new"}) {
    const std::string runs = runs_html(clean, side);
    if (!runs.empty()) page.body += fmt::format("<p class=\"run\">{}</p>\n", runs);
  }
  page.body += fmt::format("<section id=\"gate\"{}><h2>{}</h2>{}</section>\n",
                           compared && clean["regression"] != false ? " class=\"bad\"" : "",
                           verdict(clean), notes(clean));
  if (compared) page.body += figures(clean);
  return html_page(page);
}

}  // namespace gpuprof
