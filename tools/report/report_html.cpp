// SPDX-License-Identifier: Apache-2.0
#include "tools/report/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/trace/listing.h"
#include "tools/analysis/left_out_kinds.h"
#include "tools/console.h"
#include "tools/report/html_page.h"
#include "tools/report/which_steps.h"

namespace gpuprof {
namespace {

struct PartLabel {
  const char* part;
  const char* label;
};

// As analysis::Part; page.css has a colour for each.
constexpr PartLabel kParts[] = {{"compute", "Compute"},
                                {"communication", "Communication, exposed"},
                                {"transfer", "Copies, exposed"},
                                {"data_loading", "Data loading"},
                                {"kernel_launch", "Kernel launch"},
                                {"allocation", "Allocation"},
                                {"synchronization", "Synchronization"},
                                {"other", "Other"},
                                {"profiler", "Profiler"},
                                {"unknown", "Not recorded"}};

class HtmlReport {
 public:
  explicit HtmlReport(const Json& report)
      : report_(report),
        tables_only_(report["tables_only"].get<bool>()),
        whole_windows_(report["whole_windows"].get<bool>()),
        pipeline_(report.contains("pipeline") ? &report["pipeline"] : nullptr),
        unit_(whole_windows_ ? "window" : "step"),
        judged_unit_(pipeline_ ? "step" : unit_) {}

  std::string body() {
    heading();
    findings("ends", "What ends the program, now or after more steps", true);
    if (!tables_only_) verdict();
    figures();
    if (!tables_only_) breakdown();
    findings("findings", "Also worth knowing", false);
    return std::move(out_);
  }

  std::string footing() {
    std::string lost;
    const bool known = report_.contains("losses");
    const Json losses = known ? report_["losses"] : Json::object();
    for (const auto& [cause, count] : losses.items()) {
      lost +=
          fmt::format("{}{} {}", lost.empty() ? "" : ", ", html_text(cause), count.get<uint64_t>());
    }
    line("<p id=\"losses\">Records lost: {}.</p>", !known         ? "not known"
                                                   : lost.empty() ? "none"
                                                                  : lost);
    const Json& overhead = report_["overhead"];
    if (overhead.contains("own_cost_pct")) {
      line("<p id=\"cost\">The profiler's own cost: {:.1f} % of the recorded time{}.</p>",
           overhead["own_cost_pct"].get<double>(),
           has_finding("slower_recorded") || has_finding("profiler_time")
               ? " for records and within CUPTI, more in all (see above)"
               : "");
    }
    return std::move(out_);
  }

  std::string title() const {
    const std::string command = html_text_of(report_["program"]["command"]);
    return command.empty() ? "gpuprof report" : command + " - gpuprof report";
  }

 private:
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    out_ += fmt::format(format, std::forward<Arguments>(arguments)...);
    out_ += '\n';
  }

  static std::string list_of(const Json& texts) {
    constexpr size_t kNamed = 3;
    std::vector<std::string> names;
    for (const Json& text : texts) names.push_back(html_text_of(text));
    return names_of_some(names, kNamed);
  }

  bool has_finding(const char* kind) const {
    const Json& findings = report_["findings"];
    return std::any_of(findings.begin(), findings.end(),
                       [kind](const Json& each) { return each["kind"] == kind; });
  }

  // How much was recorded.
  std::string extent() const {
    if (pipeline_) {
      const Json& in = *pipeline_;
      return fmt::format("{} steps of a pipeline, {} data-parallel ranks, {} stages",
                         in["steps"].get<size_t>(), in["data_parallel"].get<size_t>(),
                         in["stages"].get<size_t>());
    }
    const Json& processes = report_["processes"];
    const bool ranked = std::all_of(processes.begin(), processes.end(), [](const Json& each) {
      return each["rank"].get<int32_t>() >= 0;
    });
    const size_t members = ranked ? report_["ranks"].get<size_t>() : processes.size();
    const Json& steps = report_["steps"];
    std::set<uint64_t> numbers;
    for (const Json& each : steps) numbers.insert(each["step"].get<uint64_t>());
    return fmt::format(
        "{} {}{}, {}", members, ranked ? "rank" : "process",
        members == 1 ? ""
        : ranked     ? "s"
                     : "es",
        whole_windows_ ? fmt::format("{} window{}", steps.size(), steps.size() == 1 ? "" : "s")
                       : which_steps(numbers) + (has_finding("clock_steps") ? kClockSteps : ""));
  }

  void heading() {
    const Json& program = report_["program"];
    line("<p class=\"program\"><code>{}</code></p>", html_text_of(program["command"]));
    line("<p class=\"place\">{}{}{}{}{}</p>", extent(), program["hosts"].empty() ? "" : " \u00b7 ",
         list_of(program["hosts"]), program["gpus"].empty() ? "" : " \u00b7 ",
         list_of(program["gpus"]));
  }

  void verdict() {
    line("<section id=\"verdict\"><h2>Verdict</h2>");
    if (report_["verdict"].empty()) {
      line("<p class=\"none\">No verdict: {}.</p>", html_text_of(report_["reason"]));
    }
    if (!report_["verdict"].empty()) unknown_causes();
    for (const Json& each : report_["verdict"]) cause(each);
    line("</section>");
  }

  void unknown_causes() {
    if (!report_.contains("unknown_causes") || report_["unknown_causes"].empty()) return;
    line("<p id=\"unknown-causes\">{}</p>",
         html_text(analysis::unknown_causes_text(
             report_["unknown_causes"].get<std::vector<std::string>>(),
             report_["why_unknown"].get_ref<const std::string&>())));
  }

  void cause(const Json& verdict) {
    const std::string name = html_text_of(verdict["cause"]);
    const bool healthy = name == "compute";
    std::string label = name;
    for (char& c : label) {
      if (c == '_') c = ' ';
    }
    line("<article class=\"cause\" data-cause=\"{}\">", name);
    if (healthy) {
      line("<div class=\"saving\"><b>{:.1f} %</b><span>of {} time is GPU work</span></div>",
           verdict["share_pct"].get<double>(), judged_unit_);
    } else {
      line(
          "<div class=\"saving\"><b>\u2212{:.1f} %</b><span>{} time when "
          "fixed</span></div>",
          verdict["saves_pct"].get<double>(), judged_unit_);
    }
    line("<div><h3>{}</h3>", label);
    if (healthy) {
      line("<p>No other cause was found: the GPU is the limit.</p>");
    } else {
      line("<p><b>{:.1f} %</b> of {} time. {}</p>", verdict["share_pct"].get<double>(),
           judged_unit_, html_text_of(verdict["advice"]));
    }
    line("<ul>");
    for (const Json& each : verdict["evidence"]) line("<li>{}</li>", html_text_of(each));
    if (healthy) line("<li>{}</li>", html_text_of(verdict["advice"]));
    line("</ul>");
    if (verdict["confidence"].get<double>() < 0.7) {
      line("<p class=\"faint\">confidence {:.2f}</p>", verdict["confidence"].get<double>());
    }
    line("</div></article>");
  }

  void figures() {
    if (report_["steps"].empty() && !pipeline_) return;
    const Json& gpu = report_["gpu"];
    line("<section id=\"figures\">");
    if (pipeline_) {
      pipeline_figures();
    } else {
      step_figure();
    }
    if (!tables_only_ && gpu_timed()) {
      out_ += html_figure(
          "gpu-busy", "GPU busy",
          fmt::format("{}{:.1f} %", gpu["utilization_is_least"].get<bool>() ? "at least " : "",
                      gpu["utilization_pct"].get<double>()),
          fmt::format("of {} time, kernels and copies", unit_));
    }
    if (!report_["kernels"].empty()) kernel_figures();
    line("</section>");
  }

  void step_figure() {
    const Json& time = report_["step_time_us"];
    out_ +=
        html_figure("step-time", whole_windows_ ? "Window" : "Step time", us_text(time["mean"]),
                    whole_windows_ ? "no steps: all that was recorded"
                                   : fmt::format("on average; median {}, 95 of 100 within {}",
                                                 us_text(time["median"]), us_text(time["p95"])));
  }

  void pipeline_figures() {
    const Json& in = *pipeline_;
    out_ += html_figure("step-time", "Step time", us_text(in["recorded_us"]),
                        fmt::format("mean of {} steps", in["steps"].get<size_t>()));
    out_ += html_figure("slowdown", "Slowdown",
                        fmt::format("{:.2f} \u00d7", in["slowdown"].get<double>()),
                        fmt::format("{} by simulation, {} with every operation the typical one",
                                    us_text(in["simulated_us"]), us_text(in["ideal_us"])));
  }

  void kernel_figures() {
    const Json& gpu = report_["gpu"];
    out_ += html_figure("tensor-cores", "Tensor cores",
                        fmt::format("{:.1f} %", gpu["tensor_core_pct"].get<double>()),
                        fmt::format("of kernel time; names do not tell of {:.1f} %",
                                    gpu["tensor_core_unknown_pct"].get<double>()));
    out_ += html_figure("tiny-kernels", "Tiny kernels",
                        fmt::format("{:.1f} %", gpu["tiny_kernels_pct"].get<double>()),
                        "shorter than 10 us");
  }

  bool gpu_timed() const { return report_["gpu"]["timed"].get<bool>(); }

  std::string unknown_parts() const {
    if (!report_.contains("unknown_parts") || report_["unknown_parts"].empty()) return "";
    return fmt::format(
        "<p id=\"unknown-parts\">{}</p>",
        analysis::unknown_parts_text(report_["unknown_parts"].get<std::vector<std::string>>(),
                                     !report_["left_out_kinds"].empty()));
  }

  double without_processor(const char* part) const {
    if (!report_.contains("without_processor")) return 0;
    return report_["without_processor"]["idle_pct"].value(part, 0.0);
  }

  bool is_known(const char* part) const {
    if (!report_.contains("unknown_parts")) return true;
    const Json& unknown = report_["unknown_parts"];
    return std::find(unknown.begin(), unknown.end(), part) == unknown.end();
  }

  // As in the text: what of it is the cause host_work, and what is not.
  void parts_of_other(double percent) {
    const double stalled = report_["device_idle_pct"].get<double>();
    const bool has_calls = report_["launches"]["count"].get<uint64_t>() > 0 ||
                           !report_["synchronizations"].empty() ||
                           !report_["allocations"].empty() || !report_["verdict"].empty();
    const auto row = [&](const char* name, const char* label, double share, const char* why) {
      if (share < 0.05) return;
      line("<li class=\"within\" data-part=\"{}\">{} <b>{:.1f} %</b>{}</li>", name, label, share,
           why);
    };
    if (has_calls && is_known("other")) row("host_work", "of it host work", percent - stalled, "");
    row("stalled_work", "of it stalled work", stalled,
        " <small>issued work did not begin, why is not recorded</small>");
  }

  void breakdown() {
    if (report_["steps"].empty() || !gpu_timed()) return;
    const Json& parts = report_["breakdown_pct"];
    line("<section id=\"breakdown\"><h2>Where a {}'s time goes</h2>{}<div class=\"bar\">", unit_,
         unknown_parts());
    for (const auto& [part, label] : kParts) {
      line("<i class=\"{}\" style=\"width:{:.3f}%\" title=\"{}: {:.1f} %\"></i>", part,
           parts[part].get<double>(), label, parts[part].get<double>());
    }
    line("</div><ul class=\"legend\">");
    for (const auto& [part, label] : kParts) {
      const double percent = parts[part].get<double>();
      if (percent < 0.05) continue;
      std::string note;
      if (report_["overlapped_pct"].contains(part)) {
        const double hidden = report_["overlapped_pct"][part].get<double>();
        if (hidden >= 0.05)
          note = fmt::format(" <small>and {:.1f} % under compute</small>", hidden);
      }
      const double waited = without_processor(part);
      if (waited >= 0.05) {
        note += fmt::format(" <small>{:.0f} % without a processor</small>", 100 * waited / percent);
      }
      line("<li data-part=\"{}\"><i class=\"{}\"></i>{} <b>{:.1f} %</b>{}</li>", part, part, label,
           percent, note);
      if (std::string_view(part) == "other") parts_of_other(percent - waited);
    }
    line("</ul></section>");
  }

  void findings(const char* id, const char* name, bool ending) {
    std::string items;
    for (const Json& each : report_["findings"]) {
      if (each.value("ends_program", false) != ending) continue;
      items += fmt::format("<li data-kind=\"{}\">{}</li>\n", html_text_of(each["kind"]),
                           html_text_of(each["text"]));
    }
    if (items.empty()) return;
    line("<section id=\"{}\"><h2>{}</h2><ul>", id, name);
    out_ += items;
    line("</ul></section>");
  }

  const Json& report_;
  const bool tables_only_, whole_windows_;
  const Json* const pipeline_;     // null: it is none
  const char* const unit_;         // what is looked at
  const char* const judged_unit_;  // what the verdict is of
  std::string out_;
};

}  // namespace

std::string report_html(const Json& report) {
  HtmlPage page;
  page.command = "gpuprof report";
  page.data = dump_json(report);
  const Json clean = Json::parse(page.data);  // its texts are UTF-8
  HtmlReport writer(clean);
  page.title = writer.title();
  page.body = writer.body();
  page.footing = writer.footing();
  return html_page(page);
}

}  // namespace gpuprof
