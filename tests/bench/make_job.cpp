// SPDX-License-Identifier: Apache-2.0
// usage: make_job DIRECTORY [NAME=VALUE]... Dumps of a job of many ranks (support/rank_job.h), a
// file each, and clocks.txt with each host's true offset (ns) and drift (ppm).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "formats/io/file_bytes.h"
#include "tests/unit/support/rank_job.h"

namespace gpuprof::test {
namespace {

// What each name sets; false: there is no such name.
bool set(RankJob& job, const std::string& name, double value) {
  const auto whole = static_cast<int64_t>(value);
  const auto number = static_cast<int>(whole);
  const std::map<std::string, std::function<void()>> names = {
      {"ranks", [&] { job.ranks = number; }},
      {"steps", [&] { job.steps = number; }},
      {"ranks-per-host", [&] { job.ranks_per_host = number; }},
      {"layers", [&] { job.layers = number; }},
      {"forward", [&] { job.forward = number; }},
      {"backward", [&] { job.backward = number; }},
      {"tail", [&] { job.tail = number; }},
      {"leaving-us", [&] { job.leaving = whole * 1000; }},
      {"offset-ms", [&] { job.offset = whole * 1'000'000; }},
      {"drift-ppm", [&] { job.drift_ppm = value; }},
      {"slow-rank", [&] { job.slow_rank = number; }},
      {"slow-factor", [&] { job.factor = value; }},
      {"pausing-rank", [&] { job.pausing_rank = number; }},
      {"pausing-step", [&] { job.pausing_step = number; }},
      {"pause-ms", [&] { job.pause_once = whole * 1'000'000; }},
      {"collective-us", [&] { job.collective = whole * 1000; }},
      {"identified", [&] { job.identified = number != 0; }},
      {"grouped", [&] { job.grouped = number; }},
      {"split", [&] { job.split = number; }},
      {"shrunk", [&] { job.shrunk = number != 0; }},
      {"message-us", [&] { job.message = whole * 1000; }},
      {"step-log-only", [&] { job.step_log_only = number != 0; }},
      {"late-windows", [&] { job.late_windows = number; }},
      {"seed", [&] { job.seed = static_cast<uint64_t>(whole); }},
  };
  const auto at = names.find(name);
  if (at == names.end()) return false;
  at->second();
  return true;
}

int run(const std::string& folder, const RankJob& job) {
  std::filesystem::create_directories(folder);
  std::vector<std::unique_ptr<std::ofstream>> files;
  for (int rank = 0; rank < job.ranks; ++rank) {
    const std::string host = "node" + std::to_string(rank / job.ranks_per_host);
    files.push_back(
        std::make_unique<std::ofstream>(folder + "/" + host + "_r" + std::to_string(rank) + "_" +
                                            std::to_string(4242 + rank) + "_1_w0.gpuprof",
                                        std::ios::binary));
  }
  const auto clocks = run_rank_job(job, [&](int rank, std::string_view bytes) {
    files[static_cast<size_t>(rank)]->write(bytes.data(),
                                            static_cast<std::streamsize>(bytes.size()));
  });
  std::ofstream truth(folder + "/clocks.txt");
  for (size_t host = 0; host < clocks.size(); ++host) {
    truth << "node" << host << ' ' << clocks[host].offset << ' ' << clocks[host].drift * 1e6
          << '\n';
  }
  return truth.good() ? 0 : 1;
}

}  // namespace
}  // namespace gpuprof::test

int main(int argc, char** argv) {
  gpuprof::test::RankJob job;
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    if (equals == std::string::npos ||
        !gpuprof::test::set(job, argument.substr(0, equals),
                            std::atof(argument.c_str() + equals + 1))) {
      std::fprintf(stderr, "%s: %s: no such setting\n", argv[0], argv[i]);
      return 2;
    }
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY [NAME=VALUE]...\n", argv[0]);
    return 2;
  }
  return gpuprof::test::run(argv[1], job);
}
