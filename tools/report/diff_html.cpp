// SPDX-License-Identifier: Apache-2.0
#include "tools/report/diff_html.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "tools/report/diff_output.h"
#include "tools/report/html_page.h"

namespace gpuprof {
namespace {

std::string steps_text(const Json& count) {
  return fmt::format("mean of {} step{}", count.get<size_t>(), count.get<size_t>() == 1 ? "" : "s");
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
  const double change = step["change_pct"].get<double>();
  const std::string interval =
      fmt::format("{:+.1f} % to {:+.1f} % with 95 % confidence", step["ci_low_pct"].get<double>(),
                  step["ci_high_pct"].get<double>());
  return "<section id=\"figures\">\n" +
         html_figure("base", by_typical ? "Typical step before" : "Step time before",
                     us_text(step["base_us"]), steps_text(diff["base_steps"])) +
         html_figure("new", by_typical ? "Typical step now" : "Step time now",
                     us_text(step["new_us"]), steps_text(diff["new_steps"])) +
         html_figure(
             "change", "Change",
             step["significant"].get<bool>()
                 ? fmt::format("{:.1f} % {}", std::abs(change), change > 0 ? "longer" : "shorter")
                 : std::string("none beyond noise"),
             interval) +
         "</section>\n";
}

// What else differs between the runs, and what GPUPROF_BUDGET left out of them.
std::string notes(const Json& diff) {
  std::string out;
  if (!diff.contains("notes")) return out;
  for (const Json& each : diff["notes"]) out += fmt::format("<p>{}</p>", html_text_of(each));
  return out;
}

}  // namespace

std::string diff_html(const Json& diff) {
  HtmlPage page{"gpuprof diff", "gpuprof diff", {}, {}, dump_json(diff), false};
  const Json clean = Json::parse(page.data);  // its texts are UTF-8
  const bool compared = clean["reason"].get_ref<const std::string&>().empty();
  page.body = fmt::format("<section id=\"gate\"{}><h2>{}</h2>{}</section>\n",
                          compared && clean["regression"] != false ? " class=\"bad\"" : "",
                          verdict(clean), notes(clean));
  if (compared) page.body += figures(clean);
  return html_page(page);
}

}  // namespace gpuprof
