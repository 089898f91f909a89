// SPDX-License-Identifier: Apache-2.0
#include "formats/core/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof {
namespace {

// A NULL-terminated NAME=VALUE array.
class Environment {
 public:
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/gpuprof_settings_XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Names = std::vector<std::pair<std::string, std::string>>;
void note_unknown(const char* name, const char* nearest, void* context) {
  static_cast<Names*>(context)->push_back({name, nearest});
}

// The settings that `entries` of the environment give, or the error's text.
std::string parse_environment(std::vector<std::string> entries, Config& config, int rank = 0) {
  Settings settings;
  SettingError error{};
  if (!settings.load_environment(Environment(std::move(entries)).get(), error, nullptr, nullptr) ||
      !settings.parse(rank, config, error)) {
    return error.text;
  }
  return "";
}

std::string error_of(const std::string& entry) {
  Config config;
  return parse_environment({entry}, config);
}

std::string activities_text(uint32_t mask) {
  std::string out;
  for (size_t i = 0; i < kActivityCount; ++i) {
    if ((mask >> i & 1) == 0) continue;
    if (!out.empty()) out += ",";
    out += activity_name(static_cast<Activity>(i));
  }
  return out;
}

TEST(Settings, rows_are_in_the_order_of_the_enum) {
  for (size_t i = 0; i < kSettingCount; ++i) {
    EXPECT_EQ(static_cast<size_t>(kSettingRows[i].id), i);
    EXPECT_EQ(std::string(kSettingRows[i].name).substr(0, 8), "GPUPROF_");
    EXPECT_NE(std::string(kSettingRows[i].help), "");
    EXPECT_NE(std::string(kSettingRows[i].allowed), "");
  }
}

TEST(Settings, help_lists_the_step_sources) {
  const std::string allowed = kSettingRows[static_cast<size_t>(Setting::step)].allowed;
  for (const char* const source :
       {"auto", "manual", "optimizer", "profiler", "nvtx:layer", "nccl:ncclAllReduce:3",
        "kernel:adam:1", "graph:2", "period", "sync:1", "time:100"}) {
    EXPECT_EQ(error_of(std::string("GPUPROF_STEP=") + source), "") << source;
    const std::string word(std::string_view(source).substr(0, std::string_view(source).find(':')));
    EXPECT_NE((", " + allowed).find(", " + word), std::string::npos) << word;
  }
}

TEST(Settings, defaults) {
  Config config;
  ASSERT_EQ(parse_environment({}, config, -1), "");
  EXPECT_EQ(config.mode, Mode::on);
  EXPECT_EQ(config.schedule.skip_first, 10u);
  EXPECT_EQ(config.schedule.warmup, 2u);
  EXPECT_EQ(config.schedule.active, 10u);
  EXPECT_EQ(config.schedule.repeat, 1u);
  EXPECT_EQ(config.schedule.max_s, 30);
  EXPECT_EQ(config.schedule.max_mb, 256);
  EXPECT_EQ(config.step.source, StepSource::automatic);
  EXPECT_EQ(activities_text(config.activities),
            "step,kernel,memcpy,memset,sync,api,graph,nccl,alloc,nvtx,op,tensor,samples");
  EXPECT_EQ(config.buffer_mb, 64u);
  EXPECT_EQ(config.log, LogLevel::warn);
  EXPECT_TRUE(config.rank_selected);
  EXPECT_STREQ(config.output, "gpuprof-out");
  EXPECT_STREQ(config.run, "");
  EXPECT_STREQ(config.scratch, "");
  EXPECT_STREQ(config.cupti, "");
}

TEST(Settings, every_value_is_taken) {
  Config config;
  ASSERT_EQ(parse_environment(
                {"GPUPROF_MODE=off", "GPUPROF_SCHEDULE= active=3 , max_s=0.5,max_mb=0",
                 "GPUPROF_STEP=time:2.5", "GPUPROF_OUTPUT=/x/%h/%q{USER}", "GPUPROF_RUN=run%j",
                 "GPUPROF_SCRATCH=/scratch", "GPUPROF_PRESET=light", "GPUPROF_BUFFER_MB=65536",
                 "GPUPROF_CUPTI=/opt/libcupti.so", "GPUPROF_LOG=debug"},
                config),
            "");
  EXPECT_EQ(config.mode, Mode::off);
  EXPECT_EQ(config.schedule.active, 3u);
  EXPECT_EQ(config.schedule.skip_first, 10u);
  EXPECT_EQ(config.schedule.max_s, 0.5);
  EXPECT_EQ(config.schedule.max_mb, 0);
  EXPECT_EQ(config.step.source, StepSource::time);
  EXPECT_EQ(config.step.milliseconds, 2.5);
  EXPECT_STREQ(config.output, "/x/%h/%q{USER}");
  EXPECT_STREQ(config.run, "run%j");
  EXPECT_STREQ(config.scratch, "/scratch");
  EXPECT_EQ(activities_text(config.activities), "step,kernel,memcpy,memset,sync,nccl");
  EXPECT_EQ(config.buffer_mb, 65536u);
  EXPECT_STREQ(config.cupti, "/opt/libcupti.so");
  EXPECT_EQ(config.log, LogLevel::debug);
}

TEST(Settings, an_empty_value_is_the_default) {
  for (const SettingRow& row : kSettingRows) {
    EXPECT_EQ(error_of(std::string(row.name) + "="), "") << row.name;
  }
}

struct BadValue {
  const char* entry;
  const char* message;
};

const BadValue kBadValues[] = {
    {"GPUPROF_MODE=wild", "GPUPROF_MODE=\"wild\": must be on, armed or off"},
    {"GPUPROF_SCHEDULE=active=x",
     "GPUPROF_SCHEDULE=\"active=x\": active must be a whole number from 1 to 1000000 (for example "
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=active=0",
     "GPUPROF_SCHEDULE=\"active=0\": active must be a whole number from 1 to 1000000 (for example "
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=skip_first=-1",
     "GPUPROF_SCHEDULE=\"skip_first=-1\": skip_first must be a whole number from 0 to 1000000000 "
     "(for example skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=repeat=99999999999999999999999",
     "GPUPROF_SCHEDULE=\"repeat=99999999999999999999999\": repeat must be a whole number from 0 to "
     "1000000 (for example skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=max_s=1e3",
     "GPUPROF_SCHEDULE=\"max_s=1e3\": max_s must be a number from 0 to 1000000 (for example "
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=active=1,active=2",
     "GPUPROF_SCHEDULE=\"active=1,active=2\": active is given twice; give it once"},
    {"GPUPROF_SCHEDULE=actve=1",
     "GPUPROF_SCHEDULE=\"actve=1\": \"actve\" is not a key of a schedule; the keys are "
     "skip_first=N,"
     "skip_first_wait=N,wait=N,warmup=N,active=N,repeat=N,max_s=N,max_mb=N, or all (for example "
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_SCHEDULE=active=1,",
     "GPUPROF_SCHEDULE=\"active=1,\": \"\" is not a key of a schedule; the keys are skip_first=N,"
     "skip_first_wait=N,wait=N,warmup=N,active=N,repeat=N,max_s=N,max_mb=N, or all (for example "
     "skip_first=10,wait=0,warmup=2,active=10,repeat=1)"},
    {"GPUPROF_STEP=optimiser",
     "GPUPROF_STEP=\"optimiser\": must be one of auto, manual, optimizer (PyTorch's), profiler "
     "(cudaProfilerStart/Stop), nvtx:NAME, nccl:OP:N, kernel:REGEX:N, graph:N, period (found from "
     "the order of launches), sync:N (every Nth "
     "cudaDeviceSynchronize), "
     "time:MS"},
    {"GPUPROF_STEP=sync",
     "GPUPROF_STEP=\"sync\": must be one of auto, manual, optimizer (PyTorch's), profiler "
     "(cudaProfilerStart/Stop), nvtx:NAME, nccl:OP:N, kernel:REGEX:N, graph:N, period (found from "
     "the order of launches), sync:N (every Nth "
     "cudaDeviceSynchronize), "
     "time:MS"},
    {"GPUPROF_STEP=nccl:AllReduce:1",
     "GPUPROF_STEP=\"nccl:AllReduce:1\": nccl:OP:N takes one of ncclAllReduce, ncclBroadcast, "
     "ncclBcast, ncclReduce, ncclAllGather, ncclReduceScatter, ncclAlltoAll, ncclGather, "
     "ncclScatter, ncclSend, ncclRecv, as in nccl:ncclAllReduce:8"},
    {"GPUPROF_STEP=nccl:ncclAllReduce",
     "GPUPROF_STEP=\"nccl:ncclAllReduce\": nccl:OP:N takes a whole number from 1 to 1000000, as in "
     "nccl:ncclAllReduce:8"},
    {"GPUPROF_STEP=kernel:adam",
     "GPUPROF_STEP=\"kernel:adam\": kernel:REGEX:N takes a regular expression of 1 to 127 "
     "characters and a number, as in kernel:adam:1"},
    {"GPUPROF_STEP=kernel:adam(:1",
     "GPUPROF_STEP=\"kernel:adam(:1\": \"adam(\" is no POSIX extended regular expression: "
     "Unmatched "
     "( or \\( (as in kernel:adam:1)"},
    {"GPUPROF_STEP=graph:0",
     "GPUPROF_STEP=\"graph:0\": graph:N takes a whole number from 1 to 1000000, as in graph:1"},
    {"GPUPROF_STEP=profiler:1",
     "GPUPROF_STEP=\"profiler:1\": must be one of auto, manual, optimizer (PyTorch's), profiler "
     "(cudaProfilerStart/Stop), nvtx:NAME, nccl:OP:N, kernel:REGEX:N, graph:N, period (found from "
     "the order of launches), sync:N (every Nth "
     "cudaDeviceSynchronize), "
     "time:MS"},
    {"GPUPROF_STEP=sync:0",
     "GPUPROF_STEP=\"sync:0\": sync:N takes a whole number from 1 to 1000000, as in sync:1"},
    {"GPUPROF_STEP=time:0.5",
     "GPUPROF_STEP=\"time:0.5\": time:MS takes milliseconds from 1 to 86400000, as in time:1000"},
    {"GPUPROF_STEP=nvtx:",
     "GPUPROF_STEP=\"nvtx:\": the name of an NVTX range has 1 to 127 characters, as in nvtx:step"},
    {"GPUPROF_OUTPUT=out-%z",
     "GPUPROF_OUTPUT=\"out-%z\": after % allowed are h (host), r (rank), p (pid), j (job), "
     "q{VARIABLE} and %"},
    {"GPUPROF_OUTPUT=50%",
     "GPUPROF_OUTPUT=\"50%\": after % allowed are h (host), r (rank), p (pid), j (job), "
     "q{VARIABLE} "
     "and %"},
    {"GPUPROF_SCRATCH=%q{USER",
     "GPUPROF_SCRATCH=\"%q{USER\": after % allowed are h (host), r (rank), p (pid), j (job), "
     "q{VARIABLE} and %"},
    {"GPUPROF_RUN=a/b",
     "GPUPROF_RUN=\"a/b\": must be a plain name without / (a directory is made of it)"},
    {"GPUPROF_RUN=latest", "GPUPROF_RUN=\"latest\": is a reserved name; choose another"},
    {"GPUPROF_PRESET=heavy", "GPUPROF_PRESET=\"heavy\": must be light, default or full"},
    {"GPUPROF_STACKS=launch,malloc",
     "GPUPROF_STACKS=\"launch,malloc\": \"malloc\" has no stacks; allowed are launch, sync, alloc, "
     "nccl, as in launch:10,nccl (or preset, or none)"},
    {"GPUPROF_MEMORY=2", "GPUPROF_MEMORY=\"2\": must be 0 or 1"},
    {"GPUPROF_STACKS=launch:0",
     "GPUPROF_STACKS=\"launch:0\": launch:N takes a whole number from 1 to 1000000 (one call in "
     "N), "
     "as in launch:10"},
    {"GPUPROF_ACTIVITIES=kernel,tensors",
     "GPUPROF_ACTIVITIES=\"kernel,tensors\": \"tensors\" is not an activity; allowed are step, "
     "kernel, memcpy, memset, sync, api, graph, nccl, alloc, nvtx, op, op:shapes, module, tensor, "
     "samples, malloc, nvml, samples:native, "
     "graph:trace, graph:node, malloc:KIB (1 to 1048576) (a list, or changes to the preset such as "
     "+api,-nvtx)"},
    {"GPUPROF_ACTIVITIES=+api,nvtx",
     "GPUPROF_ACTIVITIES=\"+api,nvtx\": every activity needs + or - here, as in +api,-nvtx"},
    {"GPUPROF_ACTIVITIES=api,-nvtx",
     "GPUPROF_ACTIVITIES=\"api,-nvtx\": + and - do not go with a plain list; use one or the other"},
    {"GPUPROF_RANKS=1-",
     "GPUPROF_RANKS=\"1-\": must be all, or ranks and ranges of ranks, as in 0,8-15"},
    {"GPUPROF_RANKS=5-2",
     "GPUPROF_RANKS=\"5-2\": must be all, or ranks and ranges of ranks, as in 0,8-15"},
    {"GPUPROF_BUFFER_MB=0",
     "GPUPROF_BUFFER_MB=\"0\": must be a whole number of megabytes from 1 to 65536 (for example "
     "64)"},
    {"GPUPROF_BUFFER_MB=64MB",
     "GPUPROF_BUFFER_MB=\"64MB\": must be a whole number of megabytes from 1 to 65536 (for example "
     "64)"},
    {"GPUPROF_CUPTI=on",
     "GPUPROF_CUPTI=\"on\": must be auto, off, or the path of libcupti.so (with a /)"},
    {"GPUPROF_REDACT=paths,names",
     "GPUPROF_REDACT=\"paths,names\": must be none, all, or a list of command, paths, host, user, "
     "environment"},
    {"GPUPROF_LOG=verbose", "GPUPROF_LOG=\"verbose\": must be error, warn, info or debug"},
};

TEST(Settings, a_bad_value_is_named_with_what_is_allowed) {
  for (const BadValue& bad : kBadValues) EXPECT_EQ(error_of(bad.entry), bad.message) << bad.entry;
}

TEST(Settings, messages_stay_on_one_line_and_within_their_buffer) {
  const std::string control = error_of("GPUPROF_MODE=a\nb\tc");
  EXPECT_EQ(control, "GPUPROF_MODE=\"a?b?c\": must be on, armed or off");
  const std::string cut = error_of("GPUPROF_MODE=" + std::string(900, 'x'));
  EXPECT_EQ(cut, "GPUPROF_MODE=\"" + std::string(100, 'x') + "...\": must be on, armed or off");
  const std::string longer = error_of("GPUPROF_OUTPUT=" + std::string(1024, 'x'));
  EXPECT_EQ(longer, "GPUPROF_OUTPUT=\"" + std::string(100, 'x') +
                        "...\": must have fewer than 1024 characters");
  EXPECT_EQ(error_of("GPUPROF_OUTPUT=" + std::string(1023, 'x')), "");
}

TEST(Settings, activities) {
  const std::pair<const char*, const char*> cases[] = {
      {"kernel", "kernel"},
      {"nvtx, step", "step,nvtx"},
      {"-nvtx,-alloc", "step,kernel,memcpy,memset,sync,api,graph,nccl,op,tensor,samples"},
      {"-nvtx,+nvtx,-step,-op",
       "kernel,memcpy,memset,sync,api,graph,nccl,alloc,nvtx,tensor,samples"},
      {"op:shapes", "op,op:shapes"},
      {"samples:native", "samples,samples:native"},
      {"+module,+op:shapes,-op:shapes,-alloc,-tensor",
       "step,kernel,memcpy,memset,sync,api,graph,nccl,nvtx,op,module,samples"},
      {"preset", "step,kernel,memcpy,memset,sync,api,graph,nccl,alloc,nvtx,op,tensor,samples"},
  };
  for (const auto& [text, expected] : cases) {
    Config config;
    EXPECT_EQ(parse_environment({std::string("GPUPROF_ACTIVITIES=") + text}, config), "");
    EXPECT_EQ(activities_text(config.activities), expected) << text;
  }
  Config config;
  EXPECT_EQ(parse_environment({"GPUPROF_ACTIVITIES=+api", "GPUPROF_PRESET=light"}, config), "");
  EXPECT_EQ(activities_text(config.activities), "step,kernel,memcpy,memset,sync,api,nccl");
}

TEST(Settings, samples_of_host_memory) {
  const std::pair<const char*, uint64_t> cases[] = {{"+malloc", 512 << 10},
                                                    {"+malloc:1", 1 << 10},
                                                    {"kernel,malloc:1048576", 1 << 30},
                                                    {"preset", 512 << 10}};
  for (const auto& [text, expected] : cases) {
    Config config;
    EXPECT_EQ(parse_environment({std::string("GPUPROF_ACTIVITIES=") + text}, config), "");
    EXPECT_EQ(config.heap_interval, expected) << text;
    const bool on = config.activities >> static_cast<uint32_t>(Activity::heap) & 1;
    EXPECT_EQ(on, std::string(text) != "preset") << text;
  }
}

TEST(Settings, stacks) {
  struct Row {
    std::vector<std::string> settings;
    uint32_t launch, sync, alloc, nccl;
  };
  const Row rows[] = {
      {{}, 0, 0, 0, 0},
      {{"GPUPROF_PRESET=full"}, 1, 1, 1, 1},
      {{"GPUPROF_PRESET=full", "GPUPROF_STACKS=none"}, 0, 0, 0, 0},
      {{"GPUPROF_PRESET=full", "GPUPROF_STACKS=preset"}, 1, 1, 1, 1},
      {{"GPUPROF_PRESET=full", "GPUPROF_STACKS=alloc"}, 0, 0, 1, 0},
      {{"GPUPROF_STACKS=launch:10, nccl"}, 10, 0, 0, 1},
      {{"GPUPROF_STACKS= sync : 3 ,launch:1000000"}, 1000000, 3, 0, 0},
  };
  for (const Row& row : rows) {
    Config config;
    EXPECT_EQ(parse_environment(row.settings, config), "");
    EXPECT_EQ(std::vector<uint32_t>(config.stack_every, config.stack_every + kStackKindCount),
              (std::vector<uint32_t>{row.launch, row.sync, row.alloc, row.nccl}));
  }
}

TEST(Settings, ranks) {
  struct Row {
    const char* text;
    int rank;
    bool selected;
  };
  const Row rows[] = {{"all", 7, true},    {"0", 0, true},          {"0", 1, false},
                      {"0,8-15", 8, true}, {"0,8-15", 15, true},    {"0,8-15", 16, false},
                      {"3", -1, true},     {" 1 , 2 - 4 ", 3, true}};
  for (const Row& row : rows) {
    Config config;
    EXPECT_EQ(parse_environment({std::string("GPUPROF_RANKS=") + row.text}, config, row.rank), "");
    EXPECT_EQ(config.rank_selected, row.selected) << row.text << " rank " << row.rank;
  }
}

TEST(Settings, step_sources_and_back) {
  for (const char* text :
       {"auto", "manual", "optimizer", "profiler", "nvtx:ProfilerStep#", "nvtx:a:b",
        "nccl:ncclAllReduce:8", "kernel:at::native::(adam|sgd)<float>:2", "graph:3", "sync:4",
        "time:1000", "time:16.667"}) {
    StepSpec spec;
    SettingError error;
    char out[256];
    ASSERT_TRUE(parse_step(text, spec, error)) << error.text;
    EXPECT_EQ(format_step(spec, out, sizeof(out)), std::strlen(text));
    EXPECT_STREQ(out, text);
  }
  StepSpec spec;
  SettingError error;
  EXPECT_TRUE(parse_step("nvtx:" + std::string(127, 'n'), spec, error));
  EXPECT_FALSE(parse_step("nvtx:" + std::string(128, 'n'), spec, error));
}

TEST(Settings, schedule_of_the_whole_program) {
  ScheduleSpec spec;
  SettingError error;
  char out[256];
  const char* const rows[][2] = {{"all", "all,max_s=0,max_mb=256"},
                                 {"all,max_mb=5", "all,max_s=0,max_mb=5"},
                                 {"max_s=3,all", "all,max_s=3,max_mb=256"}};
  for (const auto& [text, expected] : rows) {
    ASSERT_TRUE(parse_schedule(text, spec, error)) << text;
    EXPECT_TRUE(spec.all && !is_default_schedule(spec));
    format_schedule(spec, out, sizeof out);
    EXPECT_STREQ(out, expected);
    ScheduleSpec again;
    EXPECT_TRUE(parse_schedule(out, again, error)) << error.text;
  }
  EXPECT_FALSE(parse_schedule("all,active=3", spec, error));
  EXPECT_NE(std::string(error.text).find("max_s and max_mb alone"), std::string::npos);
  ASSERT_TRUE(parse_schedule("max_s=5,max_mb=1,active=10", spec, error));
  EXPECT_TRUE(is_default_schedule(spec)) << "its limits alone are others";
  ASSERT_TRUE(parse_schedule("active=11", spec, error));
  EXPECT_FALSE(is_default_schedule(spec));
}

TEST(Settings, schedule_in_full) {
  ScheduleSpec spec;
  SettingError error;
  ASSERT_TRUE(parse_schedule("active=5,max_s=2.25,skip_first_wait=1", spec, error));
  char out[256];
  const std::string expected =
      "skip_first=10,skip_first_wait=1,wait=0,warmup=2,active=5,repeat=1,max_s=2.25,max_mb=256";
  EXPECT_EQ(format_schedule(spec, out, sizeof(out)), expected.size());
  EXPECT_EQ(out, expected);
  ScheduleSpec again;
  EXPECT_TRUE(parse_schedule(out, again, error)) << error.text;
  char small[8];
  EXPECT_EQ(format_schedule(spec, small, sizeof(small)), 7u);
  EXPECT_STREQ(small, "skip_fi");
}

TEST(Settings, a_failed_parse_leaves_the_spec_alone) {
  ScheduleSpec spec;
  spec.active = 77;
  SettingError error;
  EXPECT_FALSE(parse_schedule("active=3,wait=x", spec, error));
  EXPECT_EQ(spec.active, 77u);
}

TEST(Settings, unknown_names_get_the_nearest) {
  Names names;
  Settings settings;
  SettingError error;
  const Environment environment({"GPUPROF_SCHEDUL=active=1", "GPUPROF_BUFFERS_MB=3", "PATH=/bin",
                                 "GPUPROF_TEST_ANYTHING=1", "GPUPROF_STEPS", "GPUPROF_LOG=info"});
  ASSERT_TRUE(settings.load_environment(environment.get(), error, note_unknown, &names));
  const Names expected = {{"GPUPROF_SCHEDUL", "GPUPROF_SCHEDULE"},
                          {"GPUPROF_BUFFERS_MB", "GPUPROF_BUFFER_MB"},
                          {"GPUPROF_STEPS", "GPUPROF_STEP"}};
  EXPECT_EQ(names, expected);
  EXPECT_STREQ(settings.text(Setting::log), "info");
}

TEST(Settings, set_refuses_an_unknown_name) {
  Settings settings;
  SettingError error;
  EXPECT_FALSE(settings.set("GPUPROF_MOD", "on", SettingSource::environment, error));
  EXPECT_STREQ(error.text, "GPUPROF_MOD is not a setting; did you mean GPUPROF_MODE");
}

TEST(Settings, later_sources_win_and_are_named) {
  const TemporaryFile file(
      "# our cluster\n\n  GPUPROF_LOG = info\nGPUPROF_BUFFER_MB=32 # small\n"
      "GPUPROF_RUN='a # b'\nGPUPROF_OUTPUT=\"/data/my runs\"  # quoted\n"
      "GPUPROF_STEP=nvtx:step#1\nGPUPROF_CUPTI=");
  const Environment environment({"GPUPROF_CONFIG=" + file.path(), "GPUPROF_BUFFER_MB=16"});
  Names names;
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_all(environment.get(), error, note_unknown, &names)) << error.text;
  Config config;
  ASSERT_TRUE(settings.parse(0, config, error)) << error.text;
  EXPECT_EQ(config.log, LogLevel::info);
  EXPECT_EQ(config.buffer_mb, 16u);
  EXPECT_STREQ(config.run, "a # b");
  EXPECT_STREQ(config.output, "/data/my runs");
  EXPECT_STREQ(config.step.name, "step#1");
  EXPECT_STREQ(settings.source_name(Setting::log), file.path().c_str());
  EXPECT_STREQ(settings.source_name(Setting::buffer_mb), "environment");
  EXPECT_STREQ(settings.source_name(Setting::mode), "default");
  EXPECT_TRUE(names.empty());
}

TEST(Settings, a_config_file_wins_over_the_system_file) {
  const TemporaryFile system("GPUPROF_LOG=debug\nGPUPROF_MODE=off\n");
  const TemporaryFile config_file("GPUPROF_LOG=info\n");
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_file(system.path().c_str(), SettingSource::system_file, error));
  ASSERT_TRUE(settings.load_file(config_file.path().c_str(), SettingSource::config_file, error));
  EXPECT_STREQ(settings.text(Setting::log), "info");
  EXPECT_STREQ(settings.text(Setting::mode), "off");
  EXPECT_STREQ(settings.source_name(Setting::mode), "/etc/gpuprof.conf");
}

TEST(Settings, a_system_file_that_others_may_write_is_not_accepted) {
  const TemporaryFile file("GPUPROF_ON_TRACE_READY=/tmp/theirs {}\n");
  SettingError error;
  const auto load = [&] {
    Settings settings;
    const bool good = settings.load_file(file.path().c_str(), SettingSource::system_file, error);
    EXPECT_EQ(good, std::string(settings.text(Setting::on_trace_ready)) != "none");
    return good;
  };
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  EXPECT_TRUE(load());
  for (const mode_t mode : {0666, 0664, 0646}) {
    ASSERT_EQ(chmod(file.path().c_str(), mode), 0);
    EXPECT_FALSE(load());
    EXPECT_NE(std::string(error.text)
                  .find(": must belong to root or to this user and be writable by its owner alone"),
              std::string::npos)
        << error.text;
  }
  if (geteuid() != 0) GTEST_SKIP() << "another owner needs root";
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  ASSERT_EQ(chown(file.path().c_str(), 54321, 54321), 0);
  EXPECT_FALSE(load());
}

TEST(Settings, lines_of_a_file_that_are_refused) {
  const std::pair<std::string, std::string> cases[] = {
      {"GPUPROF_LOG=info\nnonsense\n",
       " line 2: \"nonsense\" must be NAME=VALUE with a GPUPROF_ name, or a # comment"},
      {"LOG=info", " line 1: \"LOG=info\" must be NAME=VALUE with a GPUPROF_ name, or a # comment"},
      {"GPUPROF_RUN=\"abc",
       " line 1: \"GPUPROF_RUN=\"abc\" has a quote that is not closed, or text after it"},
      {"GPUPROF_RUN=\"a\" b",
       " line 1: \"GPUPROF_RUN=\"a\" b\" has a quote that is not closed, or text after it"},
      {"\n\nGPUPROF_CONFIG=/x\n", " line 3: GPUPROF_CONFIG can be set only in the environment"},
      {std::string(3000, 'x'), " line 1: must have at most 2048 characters"},
  };
  for (const auto& [content, message] : cases) {
    const TemporaryFile file(content);
    Settings settings;
    SettingError error;
    EXPECT_FALSE(settings.load_file(file.path().c_str(), SettingSource::config_file, error));
    EXPECT_EQ(error.text, "settings file \"" + file.path() + "\"" + message);
  }
}

TEST(Settings, a_bad_value_in_a_file_names_the_file) {
  const TemporaryFile file("GPUPROF_LOG=loud\nGPUPROF_LOUD=1");
  Names names;
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_file(file.path().c_str(), SettingSource::config_file, error,
                                 note_unknown, &names));
  EXPECT_EQ(names, (Names{{"GPUPROF_LOUD", "GPUPROF_LOG"}}));
  Config config;
  EXPECT_FALSE(settings.parse(0, config, error));
  EXPECT_EQ(error.text,
            "GPUPROF_LOG=\"loud\" (in " + file.path() + "): must be error, warn, info or debug");
}

TEST(Settings, files_that_cannot_be_read) {
  Settings settings;
  SettingError error;
  EXPECT_TRUE(settings.load_file("/nonexistent/x", SettingSource::system_file, error));
  EXPECT_FALSE(settings.load_file("/nonexistent/x", SettingSource::config_file, error));
  EXPECT_STREQ(error.text, "settings file \"/nonexistent/x\": cannot be opened: no such file");
  EXPECT_FALSE(settings.load_file("/tmp", SettingSource::config_file, error));
  EXPECT_STREQ(error.text, "settings file \"/tmp\": cannot be read: error 21");
  char name[] = "/tmp/gpuprof_fifo_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string pipe = std::string(name) + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(settings.load_file(pipe.c_str(), SettingSource::config_file, error));
  EXPECT_EQ(error.text, "settings file \"" + pipe + "\": is not a regular file");
  unlink(pipe.c_str());
  rmdir(name);
}

TEST(JobPlace, comes_from_the_launcher) {
  struct Row {
    std::vector<std::string> environment;
    int rank, local_rank, world_size;
    const char* job;
  };
  const Row rows[] = {
      {{}, -1, -1, 0, ""},
      {{"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=8", "TORCHELASTIC_RUN_ID=abc"}, 3, 1, 8, "abc"},
      {{"RANK=3", "WORLD_SIZE=8", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_JOB_ID=991",
        "TORCHELASTIC_RUN_ID=abc"},
       3,
       -1,
       8,
       "991"},
      {{"SLURM_PROCID=1", "SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=9"},
       1,
       0,
       2,
       ""},
      {{"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_SIZE=4",
        "PBS_JOBID=12[3]/x y"},
       2,
       2,
       4,
       "12[3]_x_y"},
      {{"PMI_RANK=0", "MPI_LOCALRANKID=0", "PMI_SIZE=2", "LSB_JOBID=5"}, 0, 0, 2, "5"},
      {{"RANK=x", "LOCAL_RANK=", "WORLD_SIZE=-1", "TORCHELASTIC_RUN_ID=none"}, -1, -1, 0, ""},
      {{"RANK=8", "WORLD_SIZE=8"}, 8, -1, 0, ""},
      {{"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-3"}, -1, -1, 0, "llama"},
      {{"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-2-x4b7k"}, -1, -1, 0, "llama"},
      {{"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=my-train"}, -1, -1, 0, "my-train"},
      {{"HOSTNAME=llama-worker-3"}, -1, -1, 0, ""},
  };
  for (const Row& row : rows) {
    const JobPlace place = find_job_place(Environment(row.environment).get());
    SCOPED_TRACE(row.environment.empty() ? "none" : row.environment[0]);
    EXPECT_EQ(place.rank, row.rank);
    EXPECT_EQ(place.local_rank, row.local_rank);
    EXPECT_EQ(place.world_size, row.world_size);
    EXPECT_STREQ(place.job, row.job);
  }
}

TEST(ExpandOutput, sequences) {
  const Environment environment({"USER=ann", "EMPTY="});
  JobPlace place{3, 1, 8, "77"};
  char out[64];
  SettingError error;
  auto expand = [&](const char* pattern) -> std::string {
    return expand_output(pattern, place, "node1", 42, environment.get(), out, sizeof(out), error)
               ? out
               : error.text;
  };
  EXPECT_EQ(expand("/a/%h_%r_%p_%j_%q{USER}%q{EMPTY}%%"), "/a/node1_3_42_77_ann%");
  EXPECT_EQ(expand("plain"), "plain");
  EXPECT_EQ(expand("%x"),
            "\"%x\": after % allowed are h (host), r (rank), p (pid), j (job), q{VARIABLE} and %");
  EXPECT_EQ(expand("a%"),
            "\"a%\": after % allowed are h (host), r (rank), p (pid), j (job), q{VARIABLE} and %");
  EXPECT_EQ(expand("%q{USER"), "\"%q{USER\": %q{ has no closing }");
  EXPECT_EQ(expand("%q{NOT}"),
            "\"%q{NOT}\": NOT is not set in the environment; set it or leave %q out");
  EXPECT_EQ(expand("%h%h%h%h%h%h%h%h%h%h%h%h%h"),
            "\"%h%h%h%h%h%h%h%h%h%h%h%h%h\": is too long once expanded");
  place = JobPlace{-1, -1, 0, ""};
  EXPECT_EQ(expand("%r-%j"), "0-nojob");
}

}  // namespace
}  // namespace gpuprof
