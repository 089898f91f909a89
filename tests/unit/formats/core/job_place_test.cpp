// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, by its launcher; names with %h, %r, %p, %j.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/core/settings.h"
#include "tests/unit/support/settings_of.h"

namespace gpuprof::test {
namespace {

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
}  // namespace gpuprof::test
