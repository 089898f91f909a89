// SPDX-License-Identifier: Apache-2.0
// Parts of the collector that need no session: descriptors, kernel names, communicators, clocks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "collector/base/clock.h"
#include "collector/base/fork_waits.h"
#include "collector/base/os.h"
#include "collector/base/own_file.h"
#include "collector/record/collector.h"
#include "collector/record/communicators.h"
#include "collector/record/names.h"
#include "formats/core/wire.h"
#include "formats/trace/trace.h"

namespace gpuprof {
namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return (std::stringstream() << file.rdbuf()).str();
}

class OwnFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpuprof-own-XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/file";
    char why[512];
    ASSERT_TRUE(directory_.open(folder_.c_str(), OwnDirectory::Kind::run, why, sizeof why)) << why;
  }
  void TearDown() override {
    directory_.forget();
    std::filesystem::remove_all(folder_);
  }

  std::string folder_, path_;
  OwnDirectory directory_;
};

TEST_F(OwnFileTest, LiesAboveTheNumbersThatProgramsUse) {
  OwnFile file;
  ASSERT_TRUE(file.create(directory_, "file"));
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GE(file.descriptor(), static_cast<int>(std::min<rlim_t>(512, limit.rlim_cur / 2)));
  EXPECT_EQ(file.append("abc", 3), 0);
  EXPECT_EQ(file.close(), 0);
  EXPECT_EQ(contents(path_), "abc");
}

TEST_F(OwnFileTest, DoesNotWriteToAFileThatTookItsNumber) {
  OwnFile file;
  ASSERT_TRUE(file.create(directory_, "file"));
  ASSERT_EQ(file.append("one ", 4), 0);
  const std::string other = folder_ + "/other";
  const int taken = ::open(other.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::dup2(taken, file.descriptor()), file.descriptor());
  EXPECT_EQ(file.append("two", 3), 0) << "opened again by its name";
  EXPECT_EQ(contents(path_), "one two");
  EXPECT_EQ(contents(other), "");
  ::close(taken);
}

TEST_F(OwnFileTest, GivesUpWhenItsNameIsAnotherFile) {
  OwnFile file;
  ASSERT_TRUE(file.create(directory_, "file"));
  ::close(file.descriptor());
  // Another name keeps the file, or its inode number might be given to the new one.
  std::filesystem::rename(path_, folder_ + "/kept");
  std::ofstream(path_) << "theirs";
  EXPECT_EQ(file.append("ours", 4), EBADF);
  EXPECT_EQ(contents(path_), "theirs");
}

TEST_F(OwnFileTest, RefusesWhatExistsAndLinks) {
  std::ofstream(folder_ + "/there") << "x";
  std::filesystem::create_symlink(folder_ + "/nowhere", path_);
  OwnFile file;
  EXPECT_FALSE(file.create(directory_, "there"));
  EXPECT_FALSE(file.create(directory_, "file"));
}

TEST(Names, KernelsByHostFunctionByHandleAndAfterUnload) {
  int module = 0, function = 0, kernel = 0;
  register_function(&module, &function, "_Z1kv");
  register_kernel(&kernel, &function);
  EXPECT_EQ(lookup_function(&function), "_Z1kv");
  EXPECT_EQ(lookup_function(&kernel), "_Z1kv");
  EXPECT_EQ(lookup_function(&module), "");
  unregister_functions(&module);
  EXPECT_EQ(lookup_function(&function), "");
  EXPECT_EQ(lookup_function(&kernel), "");
  register_function(&module, &function, "_Z2k2v");  // another library at the same address
  EXPECT_EQ(lookup_function(&function), "_Z2k2v");
  unregister_functions(&module);
}

TEST(Names, StayWhenTheirLibraryIsClosed) {
  int module = 0, function = 0;
  char text[] = "_Z6kernelv";  // of the library
  register_function(&module, &function, text);
  const std::string_view name = lookup_function(&function);
  unregister_functions(&module);
  std::memset(text, 'x', sizeof text);
  EXPECT_EQ(name, "_Z6kernelv");
  EXPECT_EQ(lookup_function(&function), "");
  std::memcpy(text, "_Z6kernelv", sizeof text);  // opened again, where it was
  register_function(&module, &function, text);
  EXPECT_EQ(lookup_function(&function).data(), name.data()) << "one copy is enough";
  unregister_functions(&module);
}

TEST(Names, ForksBesideThreadsThatRegister) {
  let_forks_wait();
  std::atomic<bool> done{false};
  std::thread registers([&done] {
    static char functions[1000];
    for (size_t i = 0; !done; i = (i + 1) % sizeof functions) {
      register_function(functions, &functions[i], "_Z1kv");
      if (i == 0) unregister_functions(functions);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      int module = 0, function = 0;
      register_function(&module, &function, "_Z1kv");
      ::_exit(lookup_function(&function) == "_Z1kv" ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  done = true;
  registers.join();
}

TEST(Names, ManyKernels) {
  static char functions[20000];
  std::vector<std::string> names(sizeof functions);
  for (size_t i = 0; i < sizeof functions; ++i) {
    names[i] = "kernel_" + std::to_string(i);
    register_function(functions, &functions[i], names[i].c_str());
    if (i % 1000 == 0) {
      EXPECT_EQ(lookup_function(&functions[i]), names[i]);
    }
  }
  for (size_t i = 0; i < sizeof functions; i += 7)
    ASSERT_EQ(lookup_function(&functions[i]), names[i]);
}

TEST(Communicators, PlaceAndSequence) {
  int a = 0, b = 0;
  uint32_t sequence = 99;
  register_communicator(&a, {4, 2});
  EXPECT_EQ(note_collective(&a, &sequence).rank_count, 4);
  EXPECT_EQ(sequence, 0u);
  EXPECT_EQ(note_collective(&a, &sequence).rank, 2);
  EXPECT_EQ(sequence, 1u);
  EXPECT_EQ(note_collective(&b, &sequence).rank_count, 0) << "not known, still counted";
  EXPECT_EQ(sequence, 0u);
  // Messages by peer and direction, beside collectives.
  for (const auto& [peer, sends] : {std::pair{1, true}, {1, false}, {3, true}}) {
    for (uint32_t i = 0; i < 3; ++i) {
      note_collective(&a, &sequence, {peer, sends});
      EXPECT_EQ(sequence, i) << peer;
    }
  }
  note_collective(&a, &sequence);
  EXPECT_EQ(sequence, 2u);
  forget_communicator(&a);
  EXPECT_EQ(note_collective(&a, &sequence).rank_count, 0);
}

TEST(Communicators, AskForTheirGroupOnce) {
  int a = 0;
  uint32_t sequence = 0;
  EXPECT_TRUE(note_collective(&a, &sequence).asks_group);
  EXPECT_FALSE(note_collective(&a, &sequence).asks_group);
  forget_communicator(&a);
  EXPECT_TRUE(note_collective(&a, &sequence).asks_group) << "another one at the same address";
}

dump::Communicator written(const void* communicator) {
  ByteBuffer bytes;
  WireWriter wire(bytes);
  encode_communicators(wire, 21, 0);
  dump::Summary summary;
  EXPECT_TRUE(summary.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  for (const dump::Communicator& each : summary.communicator()) {
    if (each.handle() == reinterpret_cast<uint64_t>(communicator) && !each.gone_ticks())
      return each;
  }
  return {};
}

TEST(Communicators, HaveTheNamesOfTheirGroup) {
  int whole = 0, pair = 0, other = 0;
  uint32_t sequence = 0;
  for (int* each : {&whole, &pair, &other}) note_collective(each, &sequence);
  register_communicator(&whole, {4, 1});
  register_communicator(&pair, {2, 0});
  GroupNames names{"7", "mesh_dp", 4, 3, 2};
  name_communicator(&whole, "of its call");
  name_group(&whole, names);
  name_group(&pair, names);
  name_communicator(&other, "of its call");
  EXPECT_EQ(written(&whole).name() + " " + written(&whole).description(), "7 mesh_dp");
  EXPECT_EQ(written(&whole).first_rank(), 3U + 1);
  EXPECT_EQ(written(&whole).rank_stride(), 2U);
  EXPECT_EQ(written(&pair).description(), "mesh_dp");
  EXPECT_EQ(written(&pair).rank_stride(), 0U) << "two ranks of it talk to each other";
  EXPECT_EQ(written(&other).name(), "of its call");
  for (int* each : {&whole, &pair, &other}) forget_communicator(each);
}

// On each rank the same calls give the same identity, whatever the handles.
TEST(Communicators, IdentityOfSplitsAndShrinks) {
  int world[2]{}, half[2]{};
  const char id[128] = "unique";
  uint64_t made[2][4];
  for (int rank = 0; rank < 2; ++rank) {
    identify_communicator(&world[rank], communicator_identity(id, sizeof id));
    made[rank][0] = child_identity(&world[rank], CommunicatorWay::split, 0);
    made[rank][1] = child_identity(&world[rank], CommunicatorWay::split, 0);
    made[rank][2] = child_identity(&world[rank], CommunicatorWay::shrink, 0);
    identify_communicator(&half[rank], made[rank][0]);
    made[rank][3] = child_identity(&half[rank], CommunicatorWay::split, 0);
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(made[0][i], made[1][i]);
    for (int j = 0; j < i; ++j) EXPECT_NE(made[0][i], made[0][j]);
  }
  EXPECT_EQ(child_identity(&made, CommunicatorWay::split, 0), 0u) << "of one that nobody knows";
}

TEST(Communicators, MoreThanThereIsRoomForDoNoHarm) {
  static char handles[3000];
  uint32_t sequence = 0;
  for (char& handle : handles) register_communicator(&handle, {2, 1});
  int known = 0;
  for (char& handle : handles) known += note_collective(&handle, &sequence).rank_count == 2;
  EXPECT_GT(known, 900);
  for (char& handle : handles) forget_communicator(&handle);
  register_communicator(&handles[2999], {8, 3});
  EXPECT_EQ(note_collective(&handles[2999], &sequence).rank_count, 8) << "room is used again";
}

TEST(Communicators, SequencesFromManyThreadsAreEachGivenOnce) {
  int communicator = 0;
  register_communicator(&communicator, {2, 0});
  constexpr int kThreads = 4, kCalls = 5000;
  std::vector<std::vector<uint32_t>> got(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        uint32_t sequence = 0;
        note_collective(&communicator, &sequence);
        mine.push_back(sequence);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<bool> seen(kThreads * kCalls);
  for (const auto& mine : got) {
    for (const uint32_t sequence : mine) {
      ASSERT_LT(sequence, seen.size());
      ASSERT_FALSE(seen[sequence]);
      seen[sequence] = true;
    }
  }
}

TEST(Os, ReadsFieldsOfAProcessWhateverItsName) {
  std::ofstream("/proc/self/comm") << "a) b (c";  // of this thread, which is the main one
  EXPECT_EQ(stat_field(current_pid(), 4), static_cast<uint64_t>(::getppid()));
  EXPECT_GT(stat_field(current_pid(), 22), 0u) << "when it started";
  EXPECT_EQ(stat_field(0, 4), 0u) << "no such process";
}

TEST_F(OwnFileTest, EntriesOfADirectoryAreAskedForUntilOneMatches) {
  for (int i = 0; i < 500; ++i) std::ofstream(folder_ + "/entry-" + std::to_string(i));
  int asked = 0;
  const auto count = [](const char* name, void* context) {
    *static_cast<int*>(context) += name[0] != '.';
    return false;
  };
  EXPECT_FALSE(any_entry(folder_.c_str(), count, &asked));
  EXPECT_EQ(asked, 500);
  asked = 0;
  const auto first = [](const char*, void* context) { return ++*static_cast<int*>(context) > 0; };
  EXPECT_TRUE(any_entry(folder_.c_str(), first, &asked));
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(any_entry("/nonexistent", first, &asked));
}

TEST(Clock, AUnitIsAboutANanosecondAndAnchorsAgree) {
  const ClockChoice clock = choose_clock();
  const double unit_ns = std::ldexp(1.0, static_cast<int>(clock.shift)) / clock.ticks_per_ns;
  EXPECT_GT(unit_ns, 0.45);
  EXPECT_LE(unit_ns, 1.01);
  const ClockAnchor first = read_anchor();
  const ClockAnchor second = read_anchor();
  EXPECT_GE(second.ticks, first.ticks);
  EXPECT_GE(second.monotonic_ns, first.monotonic_ns);
  const double ticks_ns = static_cast<double>(second.ticks - first.ticks) / clock.ticks_per_ns;
  const double wall_ns = static_cast<double>(second.monotonic_ns - first.monotonic_ns);
  EXPECT_NEAR(ticks_ns, wall_ns, 0.01 * wall_ns + 20000) << "the same span by both clocks";
}

}  // namespace
}  // namespace gpuprof
