// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/simtrain/launcher.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace gpuprof::simtrain {
namespace {

[[noreturn]] void become_rank(int rank, const Options& options, const std::string& id_file,
                              char** argv) {
  const std::string number = std::to_string(rank);
  const std::string count = std::to_string(options.ranks);
  setenv(options.rank_variable.c_str(), number.c_str(), 1);
  if (options.rank_variable == "RANK") {
    setenv("LOCAL_RANK", number.c_str(), 1);
    setenv("WORLD_SIZE", count.c_str(), 1);
    setenv("LOCAL_WORLD_SIZE", count.c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
  }
  setenv("SIMTRAIN_ID_FILE", id_file.c_str(), 1);
  execv("/proc/self/exe", argv);
  fmt::print(stderr, "simtrain: cannot start rank {}\n", rank);
  _exit(127);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_ranks(const Options& options, char** argv) {
  char directory[] = "/tmp/simtrain.XXXXXX";
  if (mkdtemp(directory) == nullptr) {
    fmt::print(stderr, "simtrain: cannot make a directory like {}\n", directory);
    return 1;
  }
  const std::string id_file = std::string(directory) + "/nccl_id";
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) become_rank(rank, options, id_file, argv);
    if (pid > 0) children.push_back(pid);
  }
  int result = children.size() == static_cast<size_t>(options.ranks) ? 0 : 1;
  for (const pid_t pid : children) {
    int status = 0;
    if (waitpid(pid, &status, 0) == pid && result == 0) result = exit_code(status);
  }
  ::unlink(id_file.c_str());
  ::rmdir(directory);
  return result;
}

}  // namespace gpuprof::simtrain
