// SPDX-License-Identifier: Apache-2.0
// Which rank a process is, by its launcher; names with %h, %r, %p, %j.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "formats/core/runs/node_name.h"
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

// One row a launcher, with the variables that it sets.
TEST(JobPlace, comes_from_each_launcher_whole) {
  struct Row {
    const char* launcher;
    std::vector<std::string> environment;
    int rank, local_rank, world_size, node;
    const char *job, *attempt;
  };
  const Row rows[] = {
      {"torchrun, restarted",
       {"RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16", "GROUP_RANK=1", "LOCAL_WORLD_SIZE=8",
        "TORCHELASTIC_RUN_ID=abc", "TORCHELASTIC_RESTART_COUNT=2"},
       9,
       1,
       16,
       1,
       "abc",
       "2"},
      {"torchrun in a job that Slurm requeued",
       {"RANK=9", "LOCAL_RANK=1", "WORLD_SIZE=16", "GROUP_RANK=1", "SLURM_PROCID=1",
        "SLURM_NODEID=1", "SLURM_JOB_ID=77", "SLURM_RESTART_COUNT=1", "TORCHELASTIC_RUN_ID=abc",
        "TORCHELASTIC_RESTART_COUNT=0"},
       9,
       1,
       16,
       1,
       "77",
       "1.0"},
      {"Slurm",
       {"SLURM_PROCID=5", "SLURM_LOCALID=1", "SLURM_STEP_NUM_TASKS=8", "SLURM_NODEID=1",
        "SLURM_JOB_ID=77", "SLURM_RESTART_COUNT=3"},
       5,
       1,
       8,
       1,
       "77",
       "3"},
      {"Open MPI, also in an MPIJob",
       {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
        "PMIX_RANK=2", "PMIX_NAMESPACE=prterun-launcher-1@1"},
       2,
       0,
       4,
       -1,
       "prterun-launcher-1@1",
       ""},
      {"MPICH", {"PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALRANKID=1"}, 3, 1, 4, -1, "", ""},
      {"PMIx", {"PMIX_RANK=3", "PMIX_NAMESPACE=batch.12"}, 3, -1, 0, -1, "batch.12", ""},
      {"Flux",
       {"FLUX_TASK_RANK=3", "FLUX_TASK_LOCAL_ID=1", "FLUX_JOB_SIZE=4", "FLUX_JOB_ID=f2a"},
       3,
       1,
       4,
       -1,
       "f2a",
       ""},
      {"JSM",
       {"JSM_NAMESPACE_RANK=3", "JSM_NAMESPACE_LOCAL_RANK=1", "JSM_NAMESPACE_SIZE=4",
        "LSB_JOBID=12"},
       3,
       1,
       4,
       -1,
       "12",
       ""},
      {"HPE Cray", {"PALS_RANKID=3", "PALS_LOCAL_RANKID=1", "PALS_NODEID=1"}, 3, 1, 0, 1, "", ""},
      {"JAX", {"JAX_PROCESS_ID=3", "JAX_NUM_PROCESSES=4"}, 3, -1, 4, -1, "", ""},
      {"JAX under Slurm",
       {"JAX_PROCESS_ID=1", "JAX_NUM_PROCESSES=2", "SLURM_PROCID=0", "SLURM_JOB_ID=8"},
       1,
       -1,
       2,
       -1,
       "8",
       ""},
      {"DeepSpeed",
       {"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4", "CROSS_RANK=1", "CROSS_SIZE=2", "LOCAL_SIZE=2"},
       3,
       1,
       4,
       1,
       "",
       ""},
      {"Horovod",
       {"HOROVOD_RANK=3", "HOROVOD_LOCAL_RANK=1", "HOROVOD_SIZE=4", "HOROVOD_CROSS_RANK=1"},
       3,
       1,
       4,
       1,
       "",
       ""},
      {"Ray",
       {"RANK=3", "LOCAL_RANK=1", "WORLD_SIZE=4", "NODE_RANK=1", "RAY_JOB_ID=02000000"},
       3,
       1,
       4,
       1,
       "",
       ""},
      {"Ray, in pods of a cluster",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=raycluster-gpu-worker-x4b7k", "RANK=3",
        "RAY_JOB_ID=02000000"},
       3,
       -1,
       0,
       -1,
       "raycluster-gpu-worker.02000000",
       ""},
      {"Kubernetes JobSet, torchrun in it",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-0-3-x4b7k",
        "JOB_COMPLETION_INDEX=3", "RANK=25", "LOCAL_RANK=1", "WORLD_SIZE=32",
        "TORCHELASTIC_RESTART_COUNT=0"},
       25,
       1,
       32,
       3,
       "llama-worker-0",
       "0"},
      {"Kubernetes JobSet of several jobs, which name the first pod",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-70b-worker-1-3",
        "MASTER_ADDR=llama-70b-worker-0-0.llama-70b", "JOB_COMPLETION_INDEX=3", "RANK=57"},
       57,
       -1,
       0,
       3,
       "llama-70b",
       ""},
      {"Kubernetes JobSet, JAX in it",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=gemma-slice-2-0-x4b7k",
        "JAX_COORDINATOR_ADDRESS=gemma-slice-0-0.gemma.team.svc:1234", "JAX_PROCESS_ID=8",
        "JAX_NUM_PROCESSES=16"},
       8,
       -1,
       16,
       -1,
       "gemma",
       ""},
      {"Kubernetes, an address that names another set of pods",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-1-3",
        "MASTER_ADDR=gemma-worker-0-0.gemma", "RANK=1"},
       1,
       -1,
       0,
       -1,
       "llama-worker-1",
       ""},
      {"Kubernetes, an address that is no pod's of a JobSet",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-1-3",
        "MASTER_ADDR=llama-0.llama", "RANK=1"},
       1,
       -1,
       0,
       -1,
       "llama-worker-1",
       ""},
      {"Kubernetes PyTorchJob",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-0", "RANK=1", "WORLD_SIZE=2"},
       1,
       -1,
       2,
       -1,
       "llama",
       ""},
      {"Kubernetes MPIJob",
       {"KUBERNETES_SERVICE_HOST=10.0.0.1", "HOSTNAME=llama-worker-1", "OMPI_COMM_WORLD_RANK=1",
        "OMPI_COMM_WORLD_LOCAL_RANK=0", "OMPI_COMM_WORLD_SIZE=2"},
       1,
       0,
       2,
       -1,
       "llama",
       ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.launcher);
    const JobPlace place = find_job_place(Environment(row.environment).get());
    EXPECT_EQ(place.rank, row.rank);
    EXPECT_EQ(place.local_rank, row.local_rank);
    EXPECT_EQ(place.world_size, row.world_size);
    EXPECT_EQ(place.node, row.node);
    EXPECT_STREQ(place.job, row.job);
    EXPECT_STREQ(place.attempt, row.attempt);
  }
}

// Host names of nodes end with numbers, too; the nodes of a job have different ones.
TEST(JobPlace, does_not_come_from_the_name_of_a_node) {
  char hosts[] = "/tmp/gpuprof_hosts_XXXXXX";
  const int file = ::mkstemp(hosts);
  ASSERT_GE(file, 0);
  ::close(file);
  const auto job_of = [&](const char* text, std::vector<std::string> environment) -> std::string {
    std::ofstream(hosts) << text;
    environment.insert(environment.end(), {"KUBERNETES_SERVICE_HOST=10.0.0.1", "RANK=1"});
    return find_job_place(Environment(environment).get(), hosts).job;
  };
  constexpr const char kOfPod[] = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n";
  constexpr const char kOfNode[] =
      "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tlocalhost\n";
  EXPECT_EQ(job_of(kOfPod, {"HOSTNAME=gpu-node-3"}), "gpu-node");
  EXPECT_EQ(job_of("", {"HOSTNAME=gpu-node-3"}), "gpu-node");
  EXPECT_EQ(job_of(kOfNode, {"HOSTNAME=gpu-node-3"}), "");
  EXPECT_EQ(job_of(kOfNode, {"HOSTNAME=gpu-node-3", "TORCHELASTIC_RUN_ID=none"}), "");
  for (const char* const text : {kOfPod, kOfNode}) {
    EXPECT_EQ(job_of(text, {"HOSTNAME=ip-10-0-1-23", "TORCHELASTIC_RUN_ID=job1"}), "job1");
  }
  std::remove(hosts);
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
