// SPDX-License-Identifier: Apache-2.0
// What OTLP says of a process: names, ids, and which parts of its steps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/io/utf8.h"
#include "tests/unit/support/job_model.h"
#include "tools/otlp/export.h"
#include "tools/otlp/identity.h"

namespace gpuprof::otlp {
namespace {

using namespace analysis;
using test::Job;
using test::JobModel;

std::string name_of(const std::vector<std::string>& words) {
  Process process;
  for (const std::string& word : words) process.header.add_command(word);
  return service_name(process);
}

TEST(OtlpTest, ServiceIsWhatIsRun) {
  EXPECT_EQ(name_of({"/opt/bin/train", "--layers", "4"}), "train");
  EXPECT_EQ(name_of({"python3", "-u", "-X", "dev", "src/train.py", "x.py"}), "train.py");
  EXPECT_EQ(name_of({"/usr/bin/python3.12", "-m", "pkg.train", "-x"}), "pkg.train");
  EXPECT_EQ(name_of({"python", "-c", "pass", "x"}), "python");
  EXPECT_EQ(name_of({"python"}), "python");
  EXPECT_EQ(name_of({}), "unknown_service");
}

TEST(OtlpTest, TraceIsOfJobRunAndAttempt) {
  Process process;
  const std::string unnamed = trace_id(process, 7);
  EXPECT_EQ(unnamed.size(), 32u);
  EXPECT_NE(unnamed, trace_id(process, 8));
  process.header.set_run("sweep");
  const std::string run = trace_id(process, 7);
  EXPECT_EQ(run, trace_id(process, 8));
  process.header.set_pid(5), process.header.set_rank(3);
  EXPECT_EQ(run, trace_id(process, 7));
  std::set<std::string> ids = {unnamed, run};
  process.header.set_attempt("1");
  ids.insert(trace_id(process, 7));
  process.header.set_job("77");
  ids.insert(trace_id(process, 7));
  EXPECT_EQ(ids.size(), 4u);
}

// Of a list with blanks the dump has another word.
TEST(OtlpTest, ArgumentsThatAreKeptOutAreUnknown) {
  const auto resource = [](Source source, const char* redacted) {
    Process process;
    process.source = source;
    process.header.add_command("train"), process.header.add_command("--secret");
    if (redacted) {
      dump::Setting& setting = *process.header.add_setting();
      setting.set_name("GPUPROF_REDACT"), setting.set_value(redacted);
    }
    return dump_json(process_resource(process));
  };
  for (const char* const redacted : {"all", "command", "host,command", "[redacted]"}) {
    EXPECT_EQ(resource(Source::dump, redacted).find("command_args"), std::string::npos) << redacted;
  }
  EXPECT_EQ(resource(Source::kineto, nullptr).find("command_args"), std::string::npos);
  for (const char* const redacted : {"none", "host,paths"}) {
    EXPECT_NE(resource(Source::dump, redacted).find("--secret"), std::string::npos) << redacted;
  }
}

// A rank that NCCL's communicators gave, the windows of a torch.profiler that were read before, and
// the clocks of other hosts are by what else was read.
TEST(OtlpTest, IdsAreTheSameWhateverElseIsRead) {
  Process process;
  process.header.set_host("n"), process.header.set_pid(5), process.header.set_rank(-1);
  process.header.set_process_start_ticks(77), process.header.set_window_begin_ticks(99);
  const auto instance_of = [](const Process& of) {
    const Json resource = process_resource(of);
    for (const Json& each : resource["attributes"]) {
      if (each["key"] == "service.instance.id")
        return each["value"]["stringValue"].get<std::string>();
    }
    return std::string();
  };
  const int64_t id = process_id(process);
  const std::string service = instance_of(process);
  process.header.set_rank(3);
  EXPECT_EQ(process_id(process), id);
  EXPECT_EQ(instance_of(process), service);
  process.header.set_process_start_ticks(78);
  EXPECT_NE(instance_of(process), service);
  EXPECT_NE(process_id(process), id);

  Process kineto;
  kineto.source = Source::kineto;
  kineto.window_begin = 1000;
  const int64_t first = process_id(kineto);
  kineto.header.set_window(1);
  EXPECT_EQ(process_id(kineto), first);
  kineto.window_begin = 2000;
  EXPECT_NE(process_id(kineto), first);

  std::vector<StepAnatomy> steps(2);
  steps[0].step = steps[1].step = 7;
  const Exported source{nullptr, &process, nullptr, &steps, {}, id};
  const std::string span = span_id(source, steps[0]);
  steps[0].begin = 5;
  EXPECT_EQ(span_id(source, steps[0]), span);
  EXPECT_NE(span_id(source, steps[1]), span);
}

// A report with its parts, and a file that is removed.
struct Exporting {
  explicit Exporting(Trace made) : trace(std::move(made)) {
    report = make_report(trace, Depth::all, Grouping::name, &parts);
  }
  ~Exporting() { std::filesystem::remove(path); }

  std::vector<Json> lines(const char* kind) const {
    Paths paths;
    (std::string_view(kind) == "traces" ? paths.traces : paths.metrics) = path;
    write_files(trace, report, parts, "", paths);
    std::ifstream in(path);
    std::vector<Json> out;
    for (std::string line; std::getline(in, line);) {
      EXPECT_TRUE(is_valid_utf8(line));
      out.push_back(Json::parse(line));
    }
    return out;
  }
  std::vector<Json> spans() const {
    std::vector<Json> out;
    for (const Json& line : lines("traces")) {
      for (const Json& span : line["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        out.push_back(span);
      }
    }
    return out;
  }
  // All metrics by name, one for each resource.
  std::multimap<std::string, Json> metrics() const {
    std::multimap<std::string, Json> out;
    for (const Json& line : lines("metrics")) {
      for (const Json& metric : line["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]) {
        out.emplace(metric["name"], metric);
      }
    }
    return out;
  }

  Trace trace;
  ReportParts parts;
  Report report;
  const std::string path = testing::TempDir() + "otlp_test." + std::to_string(::getpid());
};

Trace job_trace() {
  Job job;
  job.ranks = 2;
  job.data = 500'000;
  job.collective = 100'000;
  return JobModel(job).trace();
}

std::set<std::string> keys_of(const Json& span) {
  std::set<std::string> out;
  for (const Json& each : span["attributes"]) out.insert(each["key"]);
  return out;
}

std::vector<std::string> kinds_of(const Json& span) {
  std::vector<std::string> out;
  for (const Json& each : span["attributes"]) {
    if (each["key"] != "gpuprof.left_out") continue;
    for (const Json& kind : each["value"]["arrayValue"]["values"])
      out.push_back(kind["stringValue"]);
  }
  return out;
}

TEST(OtlpTest, PartsThatNeedWhatABudgetLeftOutAreAbsent) {
  Trace trace = job_trace();
  Process& first = trace.processes.front();
  first.budget.allowed_pct = 2;
  first.budget.left_out = {{ShedKind::calls, first.steps[2].begin + 1000, 3}};
  const Exporting made(std::move(trace));
  int lacking = 0;
  for (const Json& span : made.spans()) {
    const std::set<std::string> keys = keys_of(span);
    const bool lacks = !kinds_of(span).empty();
    lacking += lacks;
    EXPECT_EQ(kinds_of(span), lacks ? std::vector<std::string>{"calls"} : kinds_of(span));
    EXPECT_EQ(keys.contains("gpuprof.step.allocation_ns"), !lacks);
    EXPECT_TRUE(keys.contains("gpuprof.step.data_loading_ns"));
    EXPECT_TRUE(keys.contains("gpuprof.step.compute_ns"));
  }
  EXPECT_EQ(lacking, static_cast<int>(made.trace.processes.front().steps.size()) - 2);
  const auto metrics = made.metrics();
  EXPECT_EQ(metrics.count("gpuprof.left_out"), 1u);
  EXPECT_EQ(metrics.count("gpuprof.run.left_out"), 1u);
  EXPECT_EQ(metrics.count("gpuprof.data.wait"), 2u);
}

TEST(OtlpTest, SpansAreTheReportsSteps) {
  const Exporting made(job_trace());
  const std::vector<Json> spans = made.spans();
  ASSERT_EQ(spans.size(), made.report.steps.size());
  std::set<std::string> ids;
  for (const Json& span : spans) {
    EXPECT_EQ(span["name"], "step");
    EXPECT_EQ(keys_of(span).size(), 3 + kParts);
    ids.insert(span["spanId"]);
  }
  EXPECT_EQ(ids.size(), spans.size());
}

TEST(OtlpTest, WindowsAreNoSteps) {
  Job job;
  job.marked = false;
  job.one_off = true;
  const Exporting made(JobModel(job).trace());
  ASSERT_TRUE(made.report.whole_windows);
  const std::vector<Json> spans = made.spans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0]["name"], "window");
}

// One of the kinds of GPU work was not to be recorded.
TEST(OtlpTest, NoPartIsKnownWithoutAllGpuWork) {
  for (const char* const activities : {"-memcpy", "-memset", "-kernel"}) {
    Trace trace = job_trace();
    for (Process& process : trace.processes) {
      dump::Setting& setting = *process.header.add_setting();
      setting.set_name("GPUPROF_ACTIVITIES"), setting.set_value(activities);
    }
    const Exporting made(std::move(trace));
    for (const Json& span : made.spans()) {
      EXPECT_EQ(keys_of(span), (std::set<std::string>{"gpuprof.step", "gpuprof.window"}));
    }
    EXPECT_EQ(made.metrics().count("gpuprof.gpu.idle"), 0u);
    EXPECT_EQ(made.metrics().count("gpuprof.run.gpu.idle"), 0u);
    EXPECT_EQ(made.metrics().count("gpuprof.step.duration"), 2u);
  }
}

// At the window's begin the GPU had work that was not recorded.
TEST(OtlpTest, UnknownTimeIsNotIdle) {
  Job job;
  job.unrecorded = 4;
  job.sync_every = 1000;
  const Exporting made(JobModel(job).trace());
  ASSERT_GT(made.report.unknown_pct(), 1);
  double idle = 0;
  for (size_t i = kBusyParts; i < kParts; ++i) {
    if (static_cast<Part>(i) != Part::unknown) idle += made.report.breakdown_pct[i];
  }
  const std::multimap<std::string, Json> metrics = made.metrics();
  for (const char* const name : {"gpuprof.gpu.idle", "gpuprof.run.gpu.idle"}) {
    const Json& point = metrics.find(name)->second["gauge"]["dataPoints"][0];
    EXPECT_NEAR(100 * point["asDouble"].get<double>(), idle, 1e-9) << name;
  }
}

TEST(OtlpTest, NamesFromAnywhereStayJson) {
  Trace trace = job_trace();
  const std::string awkward("\"\\\n\x01\x7f \xff\xc3\x28 \xed\xa0\x80 \xe2\x80\xae\0", 22);
  for (Process& process : trace.processes) {
    process.header.set_host(awkward), process.header.set_run(awkward);
    process.header.set_job(awkward), process.header.set_attempt(awkward);
    process.header.set_command(0, awkward), process.header.add_command(awkward);
    process.header.set_executable(awkward), process.header.set_user(awkward);
    process.header.set_tool_version(awkward);
  }
  const Exporting made(std::move(trace));
  EXPECT_EQ(made.spans().size(), made.report.steps.size());
  EXPECT_EQ(made.metrics().count("gpuprof.step.duration"), 2u);
}

// OTLP's times are not negative.
TEST(OtlpTest, TimesBefore1970AreLeftOut) {
  Trace trace = job_trace();
  Exporting made(std::move(trace));
  ASSERT_GT(made.parts.steps[0].size(), 1u);
  const size_t all = made.report.steps.size();
  made.parts.steps[0][0].begin = -5;
  std::swap(made.parts.steps[0][1].begin, made.parts.steps[0][1].end);
  EXPECT_EQ(made.spans().size(), all - 2);
  Paths paths;
  paths.traces = made.path;
  EXPECT_EQ(write_files(made.trace, made.report, made.parts, "", paths).impossible, 2u);
  made.trace.processes[0].window_begin = -5;
  EXPECT_EQ(made.metrics().count("gpuprof.step.duration"), 1u);
}

TEST(OtlpTest, LinesAreShort) {
  Job job;
  job.steps = 1500;
  job.kernels = 2;
  const Exporting made(JobModel(job).trace());
  const std::vector<Json> lines = made.lines("traces");
  EXPECT_GT(lines.size(), 1u);
  std::ifstream in(made.path);
  for (std::string line; std::getline(in, line);) EXPECT_LT(line.size(), 1u << 20);
  EXPECT_EQ(made.spans().size(), made.report.steps.size());
}

// Each with all that can be lost.
TEST(OtlpTest, LinesOfManyWindowsAreShort) {
  Job job;
  job.ranks = 256;
  job.steps = 2;
  job.kernels = 2;
  Trace trace = JobModel(job).trace();
  uint32_t window = 0;
  for (Process& process : trace.processes) {
    process.header.set_rank(0), process.header.set_pid(1), process.header.set_window(window++);
    process.completeness = Completeness::complete;
    process.losses.fill(1);
  }
  const Exporting made(std::move(trace));
  EXPECT_EQ(made.metrics().count("gpuprof.losses"), 4u);
  std::ifstream in(made.path);
  for (std::string line; std::getline(in, line);) EXPECT_LT(line.size(), 1u << 20);
}

}  // namespace
}  // namespace gpuprof::otlp
