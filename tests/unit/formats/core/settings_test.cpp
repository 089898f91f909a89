// SPDX-License-Identifier: Apache-2.0
// What a value of a setting means, and what is said of a bad one.
#include "formats/core/settings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/support/settings_of.h"

namespace gpuprof::test {
namespace {

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

// The table's row and the fields of ScheduleSpec say the same.
TEST(Settings, help_states_the_defaults_of_a_schedule) {
  const SettingRow& row = kSettingRows[static_cast<size_t>(Setting::schedule)];
  const ScheduleSpec own;
  EXPECT_EQ(std::string(row.default_value),
            "skip_first=" + std::to_string(own.skip_first) + ",wait=" + std::to_string(own.wait) +
                ",warmup=" + std::to_string(own.warmup) + ",active=" + std::to_string(own.active) +
                ",repeat=" + std::to_string(own.repeat));
  const auto whole = [](double value) { return std::to_string(static_cast<int>(value)); };
  const std::string limits = "max_s=" + whole(own.max_s) + ", max_mb=" + whole(own.max_mb) + " ";
  EXPECT_NE(std::string(row.help).find(limits), std::string::npos) << row.help;
}

TEST(Settings, help_lists_the_step_sources) {
  const std::string allowed = kSettingRows[static_cast<size_t>(Setting::step)].allowed;
  for (size_t i = 0; i <= static_cast<size_t>(StepSource::time); ++i) {  // the last
    StepSpec spec;
    spec.source = static_cast<StepSource>(i);
    char text[200];
    const std::string_view form(text, format_step(spec, text, sizeof text));
    const std::string word(form.substr(0, form.find(':')));
    EXPECT_NE((", " + allowed).find(", " + word), std::string::npos) << word;
    EXPECT_NE(error_of("GPUPROF_STEP=x").find(" " + word), std::string::npos) << word;
  }
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
  EXPECT_EQ(config.log, LogLevel::info);
  EXPECT_TRUE(config.rank_selected);
  EXPECT_STREQ(config.output, "gpuprof-out");
  EXPECT_STREQ(config.run, "");
  EXPECT_STREQ(config.scratch, "");
  EXPECT_STREQ(config.cupti, "");
  EXPECT_EQ(config.budget, 0);
}

TEST(Settings, every_value_is_taken) {
  Config config;
  ASSERT_EQ(parse_environment(
                {"GPUPROF_MODE=off", "GPUPROF_SCHEDULE= active=3 , max_s=0.5,max_mb=0",
                 "GPUPROF_STEP=time:2.5", "GPUPROF_OUTPUT=/x/%h/%q{USER}", "GPUPROF_RUN=run%j",
                 "GPUPROF_SCRATCH=/scratch", "GPUPROF_PRESET=light", "GPUPROF_BUFFER_MB=65536",
                 "GPUPROF_GPU_TIMES=events", "GPUPROF_CUPTI=/opt/libcupti.so", "GPUPROF_LOG=debug",
                 "GPUPROF_METRICS=prometheus:/var/lib/%h", "GPUPROF_BUDGET=2.5%"},
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
  EXPECT_EQ(config.gpu_times, GpuTimes::events);
  EXPECT_STREQ(config.cupti, "/opt/libcupti.so");
  EXPECT_EQ(config.log, LogLevel::debug);
  EXPECT_STREQ(config.metrics, "/var/lib/%h");
  EXPECT_EQ(config.budget, 2.5);
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
     "(cudaProfilerStart/Stop), nvtx:NAME, nvtx:NAME@THREAD, forward (of PyTorch's outermost "
     "module), nccl:OP:N, "
     "kernel:REGEX:N, graph:N, period (found from the order of launches), sync:N (every Nth "
     "cudaDeviceSynchronize), "
     "time:MS"},
    {"GPUPROF_STEP=sync",
     "GPUPROF_STEP=\"sync\": must be one of auto, manual, optimizer (PyTorch's), profiler "
     "(cudaProfilerStart/Stop), nvtx:NAME, nvtx:NAME@THREAD, forward (of PyTorch's outermost "
     "module), nccl:OP:N, "
     "kernel:REGEX:N, graph:N, period (found from the order of launches), sync:N (every Nth "
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
     "(cudaProfilerStart/Stop), nvtx:NAME, nvtx:NAME@THREAD, forward (of PyTorch's outermost "
     "module), nccl:OP:N, "
     "kernel:REGEX:N, graph:N, period (found from the order of launches), sync:N (every Nth "
     "cudaDeviceSynchronize), "
     "time:MS"},
    {"GPUPROF_STEP=sync:0",
     "GPUPROF_STEP=\"sync:0\": sync:N takes a whole number from 1 to 1000000, as in sync:1"},
    {"GPUPROF_STEP=time:0.5",
     "GPUPROF_STEP=\"time:0.5\": time:MS takes milliseconds from 1 to 86400000, as in time:1000"},
    {"GPUPROF_STEP=nvtx:*",
     "GPUPROF_STEP=\"nvtx:*\": the name of an NVTX range has 1 to 127 characters, as in nvtx:step"},
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
     "samples, malloc, nvml, samples:native, sync:gpu, nvtx:xla, "
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
    {"GPUPROF_BUDGET=0",
     "GPUPROF_BUDGET=\"0\": must be none, or a percentage from 0.1 to 100 (for example 2)"},
    {"GPUPROF_BUDGET=2x",
     "GPUPROF_BUDGET=\"2x\": must be none, or a percentage from 0.1 to 100 (for example 2)"},
    {"GPUPROF_GPU_TIMES=event", "GPUPROF_GPU_TIMES=\"event\": must be cupti or events"},
    {"GPUPROF_METRICS=statsd:/x", "GPUPROF_METRICS=\"statsd:/x\": must begin with prometheus:"},
    {"GPUPROF_METRICS=prometheus:x",
     "GPUPROF_METRICS=\"prometheus:x\": must have a directory's absolute path behind prometheus:"},
    {"GPUPROF_CUPTI=on",
     "GPUPROF_CUPTI=\"on\": must be auto, off, or the path of libcupti.so (with a /)"},
    {"GPUPROF_REDACT=paths,names",
     "GPUPROF_REDACT=\"paths,names\": must be none, all, or a list of command, paths, host, user, "
     "environment"},
    {"GPUPROF_KEEP=50MB",
     "GPUPROF_KEEP=\"50MB\": must be all, or a list of N (runs), NGB (gigabytes) and Nd (days), "
     "each "
     "once and above 0, as in 20,50GB,14d"},
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
      {"sync:gpu", "sync,sync:gpu"},
      {"nvtx:xla", "nvtx,nvtx:xla"},
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

TEST(Settings, runs_that_are_kept) {
  struct Case {
    const char* text;
    uint32_t runs;
    uint64_t bytes, age_s;
  };
  constexpr uint64_t kDay = 24 * 60 * 60;
  const Case cases[] = {{"all", 0, 0, 0},
                        {"20", 20, 0, 0},
                        {"50GB", 0, 50000000000, 0},
                        {"0.5GB", 0, 500000000, 0},
                        {"14d", 0, 0, 14 * kDay},
                        {"0.5d", 0, 0, kDay / 2},
                        {" 20 , 50 GB , 14 d ", 20, 50000000000, 14 * kDay},
                        {"14d,1", 1, 0, 14 * kDay}};
  for (const Case& each : cases) {
    Config config;
    EXPECT_EQ(parse_environment({std::string("GPUPROF_KEEP=") + each.text}, config), "");
    EXPECT_EQ(config.keep.runs, each.runs) << each.text;
    EXPECT_EQ(config.keep.bytes, each.bytes) << each.text;
    EXPECT_EQ(config.keep.age_s, each.age_s) << each.text;
    EXPECT_EQ(config.keep.everything(), std::string(each.text) == "all");
  }
  for (const char* const bad : {"0", "0GB", "0d", "1,2", "1GB,2GB", "1d,1d", "-1", "1.5", "GB", "d",
                                "1,", "all,1", "1000001", "100001d", "0.0000000001GB", "20runs"}) {
    EXPECT_NE(error_of(std::string("GPUPROF_KEEP=") + bad), "") << bad;
  }
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

}  // namespace
}  // namespace gpuprof::test
