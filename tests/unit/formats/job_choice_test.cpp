// SPDX-License-Identifier: Apache-2.0
// Directories as they are in life: several jobs and attempts, ranks that are missing, cut off,
// there twice or late.
#include "formats/job_choice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/input.h"
#include "tests/unit/support/dump_maker.h"

namespace gpuprof::test {
namespace {

struct Dump {
  int rank = 0;
  uint32_t pid = 100;
  const char *job = "77", *attempt = "", *run = "shared";
  uint64_t from_us = 1000, to_us = 2000;  // its window
  uint32_t first_step = 12;
  bool whole = true;
  const char* version = "0.1.0";
  int64_t started = -1;    // in hundredths of a second since boot; -1: as `pid`
  uint64_t loaded_us = 0;  // when the library was; 0: not known
  uint32_t parent = 0;     // for which this loads data; it started when its pid says
  uint32_t window = 0;
  int world = 0;              // of its job; 0: as all of them
  uint64_t communicator = 0;  // identity of that of all ranks; 0: not known
};

std::string dump_of(const Dump& d, int world) {
  const auto ticks = [](uint64_t us) { return 2'000'000 + us * kTicksPerUs; };
  dump::Header header = make_header(0, d.rank);
  header.set_window(d.window);
  header.set_pid(d.pid + static_cast<uint32_t>(d.rank));
  header.set_os_start_time(d.started < 0 ? d.pid : static_cast<uint64_t>(d.started));
  if (d.loaded_us != 0) header.set_process_start_ticks(ticks(d.loaded_us));
  header.set_parent_pid(d.parent);
  header.set_parent_start_time(d.parent);
  header.set_world_size(d.world ? d.world : world);
  header.set_job(d.job);
  header.set_run(d.run);
  header.set_attempt(d.attempt);
  header.set_tool_version(d.version);
  header.set_window_begin_ticks(ticks(d.from_us));
  ByteBuffer bytes;
  append(bytes, ChunkKind::header, header);
  MemoryNames names;
  BatchEncoder encoder(names);
  encoder.begin(0, 0);
  Record r = make_record(Kind::launch, ticks(d.from_us + 1), ticks(d.from_us + 2),
                         names.api("cudaLaunchKernel"));
  if (!encoder.add(r, 1, "python")) throw std::bad_alloc();
  append_events(bytes, encoder);
  const uint64_t third = (d.to_us - d.from_us) / 3;
  append_steps(
      bytes,
      {ticks(d.from_us), ticks(d.from_us + third), ticks(d.from_us + 2 * third), ticks(d.to_us)},
      d.first_step, 0);
  if (d.whole) {
    dump::Summary summary = make_summary(ticks(d.to_us), d.first_step, d.first_step + 2);
    summary.set_window_begin_ticks(ticks(d.from_us));
    if (d.communicator) {
      dump::Communicator* const own = summary.add_communicator();
      own->set_identity(d.communicator);
      own->set_rank_count(static_cast<uint32_t>(d.world ? d.world : world));
    }
    append(bytes, ChunkKind::summary, summary);
  }
  return std::string(view(bytes));
}

class JobChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof_job_choice_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // From a directory of their own.
  Input read(const std::vector<Dump>& dumps, int world, const JobChoice& choice = {}) {
    const std::string folder = folder_ + "/" + std::to_string(++reads_) + "/shared";
    std::filesystem::create_directories(folder);
    size_t number = 0;
    for (const Dump& d : dumps) {
      std::ofstream(folder + "/node1_r" + std::to_string(d.rank) + "_" + std::to_string(number++) +
                        "_w" + std::to_string(d.window) + ".gpuprof",
                    std::ios::binary)
          << dump_of(d, world);
    }
    InputOptions options;
    options.choice = choice;
    return load_input({folder}, options);
  }
  static std::vector<uint32_t> pids(const Input& input) {
    std::vector<uint32_t> out;
    for (const Process& process : input.trace.processes) out.push_back(process.header.pid());
    return out;
  }
  static std::string notes(const Input& input) {
    std::string out;
    for (const std::string& note : input.trace.notes) out += note + "\n";
    return out;
  }

  std::string folder_;
  int reads_ = 0;
};

using Pids = std::vector<uint32_t>;

std::vector<Dump> two_attempts(const char* first = "", const char* second = "") {
  return {{.rank = 0, .pid = 100, .attempt = first},
          {.rank = 1, .pid = 100, .attempt = first},
          {.rank = 0, .pid = 200, .attempt = second, .from_us = 5000, .to_us = 6000},
          {.rank = 1, .pid = 200, .attempt = second, .from_us = 5000, .to_us = 6000}};
}

TEST_F(JobChoiceTest, TakesTheNewestWholeAttempt) {
  const Input input = read(two_attempts(), 2);
  EXPECT_EQ(pids(input), (Pids{200, 201}));
  EXPECT_NE(notes(input).find("2 attempts of job 77 are here: 0 (2 of 2 ranks, from "),
            std::string::npos)
      << notes(input);
  EXPECT_NE(notes(input).find("taking 1, the newest whole one; --attempt"), std::string::npos);
}

TEST_F(JobChoiceTest, DataWorkersGoWithTheProcessThatTheyLoadFor) {
  std::vector<Dump> dumps = two_attempts();
  dumps.push_back({.pid = 150, .parent = 100});
  dumps.push_back({.pid = 250, .from_us = 5000, .to_us = 6000, .parent = 200});
  EXPECT_EQ(pids(read(dumps, 2)), (Pids{200, 201, 250}));
  EXPECT_EQ(pids(read(dumps, 2, {"", "0"})), (Pids{100, 101, 150}));
}

TEST_F(JobChoiceTest, GoesByTheAttemptsThatDumpsName) {
  std::vector<Dump> dumps = two_attempts("3", "4");
  EXPECT_EQ(pids(read(dumps, 2, {"", "3"})), (Pids{100, 101}));
  dumps.pop_back();  // the newer one lacks a rank
  EXPECT_EQ(pids(read(dumps, 2)), (Pids{100, 101}));
}

// torchrun counts restarts: two of them in one allocation are both attempt 0 of its job.
TEST_F(JobChoiceTest, AttemptsOfOneNumberHaveNamesOfTheirOwn) {
  std::vector<Dump> dumps = two_attempts("0", "0");
  for (const int rank : {0, 1}) {
    dumps.push_back({.rank = rank, .pid = 300, .attempt = "0", .from_us = 9000, .to_us = 9900});
  }
  const Input newest = read(dumps, 2);
  EXPECT_EQ(pids(newest), (Pids{300, 301}));
  for (const char* const said : {"3 attempts of job 77 are here: 0 (", ", 0#2 (", ", 0#3 (",
                                 "taking 0#3, the newest whole one; --attempt"}) {
    EXPECT_NE(notes(newest).find(said), std::string::npos) << said << ": " << notes(newest);
  }
  EXPECT_EQ(pids(read(dumps, 2, {"", "0"})), (Pids{100, 101}));
  EXPECT_EQ(pids(read(dumps, 2, {"", "0#2"})), (Pids{200, 201}));
  EXPECT_EQ(pids(read(dumps, 2, {"", "0#3"})), (Pids{300, 301}));
}

// Two agents of torchrun: a rank of the first fails, so that it counts a restart. The second starts
// its workers again uncounted.
std::vector<Dump> second_round() {
  return {{.rank = 2, .pid = 200, .attempt = "0", .from_us = 5000, .to_us = 6000},
          {.rank = 0, .pid = 200, .attempt = "1", .from_us = 5100, .to_us = 6100},
          {.rank = 1, .pid = 200, .attempt = "1", .from_us = 5200, .to_us = 6200},
          {.rank = 3, .pid = 200, .attempt = "0", .from_us = 5300, .to_us = 6300}};
}

TEST_F(JobChoiceTest, AgentsThatCountOtherRestartsAreOfOneAttempt) {
  std::vector<Dump> dumps = second_round();
  const Input alone = read(dumps, 4);
  EXPECT_EQ(pids(alone).size(), 4u);
  EXPECT_EQ(notes(alone), "");
  for (int rank = 0; rank < 4; ++rank) {
    dumps.push_back({.rank = rank, .pid = 100, .attempt = "0"});
  }
  const Input input = read(dumps, 4);
  EXPECT_EQ(pids(input), (Pids{200, 201, 202, 203}));
  EXPECT_NE(notes(input).find("2 attempts of job 77 are here: 0 (4 of 4 ranks"), std::string::npos)
      << notes(input);
  EXPECT_NE(notes(input).find(", 1/0 (4 of 4 ranks"), std::string::npos) << notes(input);
  EXPECT_EQ(pids(read(dumps, 4, {"", "1/0"})), (Pids{200, 201, 202, 203}));
  EXPECT_EQ(pids(read(dumps, 4, {"", "0"})), (Pids{100, 101, 102, 103}));
}

TEST_F(JobChoiceTest, OtherNumbersAreOtherAttemptsIfMoreTellsThemApart) {
  std::vector<Dump> dumps = second_round();
  for (Dump& d : dumps) d.communicator = 77;
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 4u);
  dumps[1].communicator = dumps[2].communicator = 78;
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 2u) << "they know each other not";
  dumps = second_round();
  dumps[0].attempt = dumps[3].attempt = "1.0";
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 2u) << "the scheduler started one of them again";
  dumps = second_round();
  dumps[1].from_us = dumps[2].from_us = 7000, dumps[1].to_us = dumps[2].to_us = 8000;
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 2u) << "one after the other";
}

TEST_F(JobChoiceTest, AJobThatGoesOnWithMoreRanksIsAnotherAttempt) {
  std::vector<Dump> dumps = {{.rank = 0, .pid = 100, .attempt = "0", .world = 2},
                             {.rank = 1, .pid = 100, .attempt = "0", .world = 2}};
  for (const int rank : {3, 2, 1, 0}) {
    const uint64_t begin = 5000 + 100 * static_cast<uint64_t>(3 - rank);
    dumps.push_back({rank, 200, "77", "0", "shared", begin, begin + 1000});
  }
  EXPECT_EQ(pids(read(dumps, 4)), (Pids{200, 201, 202, 203}));
  EXPECT_EQ(pids(read(dumps, 4, {"", "0"})), (Pids{100, 101}));
}

// Its ranks do not tell it: none of them has run before.
TEST_F(JobChoiceTest, WhatStartsAfterAllOthersHaveEndedIsAnotherAttempt) {
  std::vector<Dump> dumps = {
      {.rank = 0, .pid = 100, .attempt = "0"},
      {.rank = 2, .pid = 200, .attempt = "0", .from_us = 5000, .to_us = 6000}};
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 1u);
  dumps[1].started = 100;
  EXPECT_EQ(read(dumps, 4).trace.processes.size(), 2u) << "it was there before";
}

TEST_F(JobChoiceTest, NamesRanksWithoutALaterWindow) {
  std::vector<Dump> dumps;
  for (int rank = 0; rank < 3; ++rank) dumps.push_back({.rank = rank});
  for (const int rank : {0, 2}) {
    dumps.push_back({.rank = rank, .from_us = 5000, .to_us = 6000, .first_step = 40, .window = 1});
  }
  EXPECT_EQ(notes(read(dumps, 3)), "window 1 is of 2 of these 3 ranks: rank 1 has no dump of it\n");
}

// One that a dump numbers, after one that nobody has numbered.
TEST_F(JobChoiceTest, ANumberOfTimeIsNotTakenTwice) {
  const std::vector<Dump> dumps = two_attempts("1", "");
  EXPECT_EQ(pids(read(dumps, 2, {"", "1"})), (Pids{100, 101}));
  EXPECT_EQ(pids(read(dumps, 2, {"", "1#2"})), (Pids{200, 201}));
}

TEST_F(JobChoiceTest, TakesAllAttemptsAsOneIfAsked) {
  const Input input = read(two_attempts(), 2, {"", "all"});
  EXPECT_EQ(input.trace.processes.size(), 4u);
  EXPECT_NE(notes(input).find("2 attempts are read as one: 0 (2 of 2 ranks"), std::string::npos);
  EXPECT_NE(notes(input).find("; ranks 0-1 have several processes"), std::string::npos);
}

TEST_F(JobChoiceTest, AllAttemptsAreThoseOfOneJob) {
  std::vector<Dump> dumps = two_attempts();
  dumps.push_back({.pid = 150, .parent = 100});
  for (const int rank : {0, 1}) {
    dumps.push_back({.rank = rank, .pid = 300, .job = "78", .from_us = 9000, .to_us = 9900});
  }
  dumps.push_back({.pid = 350, .job = "78", .from_us = 9000, .to_us = 9900, .parent = 300});
  EXPECT_EQ(pids(read(dumps, 2, {"77", "all"})), (Pids{100, 200, 101, 201, 150}));
  const Input newest = read(dumps, 2, {"", "all"});
  EXPECT_EQ(pids(newest), (Pids{300, 301, 350}));
  EXPECT_NE(notes(newest).find("taking 78"), std::string::npos) << notes(newest);
}

TEST_F(JobChoiceTest, RefusesWhatIsNotThere) {
  const Input input = read(two_attempts(), 2, {"", "9"});
  EXPECT_FALSE(input.readable());
  ASSERT_FALSE(input.trace.problems.empty());
  EXPECT_NE(input.trace.problems[0].reason.find("no attempt 9 is here; --attempt takes one of: 0"),
            std::string::npos);
}

TEST_F(JobChoiceTest, KeepsTwoJobsApart) {
  const std::vector<Dump> dumps = {{.rank = 0, .pid = 100, .job = "77"},
                                   {.rank = 1, .pid = 100, .job = "77"},
                                   {.rank = 0, .pid = 200, .job = "78", .from_us = 1500},
                                   {.rank = 1, .pid = 200, .job = "78", .from_us = 1500}};
  const Input newest = read(dumps, 2);
  EXPECT_EQ(pids(newest), (Pids{200, 201}));
  EXPECT_NE(notes(newest).find("2 jobs are here: 77 attempt 0"), std::string::npos);
  EXPECT_EQ(pids(read(dumps, 2, {"77", ""})), (Pids{100, 101}));
}

TEST_F(JobChoiceTest, NamesMissingRanks) {
  const Input input = read({{.rank = 0}, {.rank = 2}, {.rank = 5}}, 6);
  EXPECT_EQ(input.trace.processes.size(), 3u);
  EXPECT_EQ(notes(input), "3 of 6 ranks have dumps; ranks 1, 3-4 are missing\n");
}

TEST_F(JobChoiceTest, NamesRanksThatWereCutOff) {
  const Input input = read({{.rank = 0}, {.rank = 1, .whole = false}}, 2);
  EXPECT_EQ(input.trace.processes.size(), 2u);
  EXPECT_NE(notes(input).find("rank 1: the dump is not whole"), std::string::npos) << notes(input);
}

TEST_F(JobChoiceTest, CountsACopyOnce) {
  const Input input = read({{.rank = 0}, {.rank = 1}, {.rank = 1}}, 2);
  EXPECT_EQ(input.trace.processes.size(), 2u);
  EXPECT_NE(notes(input).find("is a copy of"), std::string::npos) << notes(input);
}

TEST_F(JobChoiceTest, KeepsTheCompleteOneOfTwoCopies) {
  const Dump whole{.rank = 0}, cut{.rank = 0, .whole = false};
  for (const auto& files : {std::vector{cut, whole}, {whole, cut}, {cut, whole, cut}}) {
    const Input input = read(files, 1);
    ASSERT_EQ(input.trace.processes.size(), 1u);
    EXPECT_EQ(input.trace.processes[0].completeness, Completeness::complete);
    EXPECT_NE(notes(input).find("is a less complete copy of"), std::string::npos) << notes(input);
  }
}

TEST_F(JobChoiceTest, NamesLateRanks) {
  const Input input = read({{.rank = 0}, {.rank = 1}, {.rank = 2, .first_step = 13}}, 3);
  EXPECT_EQ(notes(input),
            "window 0: rank 2 recorded other steps than 12-14, which most ranks have; steps 13-14 "
            "are common and compared\n");
}

TEST_F(JobChoiceTest, NamesTheStepsOfRanksOfWhichNoneAreMost) {
  EXPECT_EQ(notes(read({{.rank = 0}, {.rank = 1, .first_step = 13}}, 2)),
            "window 0: rank 0 recorded steps 12-14, rank 1 recorded steps 13-15; steps 13-14 are "
            "common and compared\n");
  std::vector<Dump> dumps;
  for (int rank = 0; rank < 12; ++rank) {
    dumps.push_back({.rank = rank, .first_step = static_cast<uint32_t>(12 + rank / 2)});
  }
  const std::string text = notes(read(dumps, 12));
  EXPECT_TRUE(text.starts_with("window 0: ranks 0-1 recorded steps 12-14, ranks 2-3")) << text;
  EXPECT_NE(text.find(", and so on; none is common to all"), std::string::npos) << text;
}

TEST_F(JobChoiceTest, NamesSeveralVersions) {
  const Input input = read({{.rank = 0}, {.rank = 1, .version = "0.2.0"}}, 2);
  EXPECT_EQ(notes(input), "the dumps are of several versions of gpuprof: 0.1.0, 0.2.0\n");
}

TEST_F(JobChoiceTest, SaysNothingOfAWholeJob) {
  EXPECT_EQ(notes(read({{.rank = 0}, {.rank = 1}}, 2)), "");
  // Nor of one that has no name.
  const std::vector<Dump> dumps = {{.rank = 0, .job = "", .run = ""},
                                   {.rank = 1, .job = "", .run = ""}};
  EXPECT_EQ(notes(read(dumps, 2)), "");
}

TEST_F(JobChoiceTest, AProgramWithoutARankThatIsRunAgainIsAnotherAttempt) {
  const std::vector<Dump> again = {{.rank = -1, .pid = 100},
                                   {.rank = -1, .pid = 200, .from_us = 5000, .to_us = 6000}};
  const Input input = read(again, 0);
  EXPECT_EQ(pids(input), (Pids{199}));
  EXPECT_NE(notes(input).find("2 attempts of job 77 are here"), std::string::npos) << notes(input);
  EXPECT_EQ(pids(read(again, 0, {"", "0"})), (Pids{99}));
}

// Their windows lie apart, yet the second was there already as the first one recorded.
TEST_F(JobChoiceTest, KeepsProcessesWithoutARankThatWereThereTogether) {
  std::vector<Dump> together = {
      {.rank = -1, .pid = 100, .to_us = 3'000'000, .started = 100},
      {.rank = -1, .pid = 200, .from_us = 4'000'000, .to_us = 5'000'000, .started = 200}};
  EXPECT_EQ(read(together, 0).trace.processes.size(), 2u);
  together[1].started = 1000000;
  EXPECT_EQ(read(together, 0).trace.processes.size(), 1u);
  // The kernel counts time in which the machine slept.
  together[1].loaded_us = 2'000'000;
  EXPECT_EQ(read(together, 0).trace.processes.size(), 2u);
  together[1].loaded_us = 3'500'000;
  EXPECT_EQ(read(together, 0).trace.processes.size(), 1u);
  // It came by exec: the process was there before.
  Dump before = together[1];
  before.from_us = 3'100'000, before.to_us = 3'400'000, before.loaded_us = 2'000'000;
  together.insert(together.begin() + 1, before);
  EXPECT_EQ(read(together, 0).trace.processes.size(), 3u);
}

// As SLURM_PROCID of a batch script: all at once, so none is an attempt of its own.
TEST_F(JobChoiceTest, KeepsProcessesThatInheritedARank) {
  const std::vector<Dump> dumps = {
      {.rank = 0, .pid = 100}, {.rank = 0, .pid = 200}, {.rank = 0, .pid = 300}};
  EXPECT_EQ(read(dumps, 1).trace.processes.size(), 3u);
}

}  // namespace
}  // namespace gpuprof::test
