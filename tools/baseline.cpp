// SPDX-License-Identifier: Apache-2.0
#include "tools/baseline.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tools/console.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& name) {
  return !name.empty() && name.size() <= 9 &&
         name.find_first_not_of("0123456789") == std::string::npos;
}

struct Newest {
  unsigned long number = 0;  // 0: there is none
  fs::path folder;
};

Newest newest_of(const std::string& directory) {
  Newest newest;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_number(name) || !entry.is_directory(error)) continue;
    if (std::stoul(name) <= newest.number) continue;
    newest = {std::stoul(name), entry.path()};
  }
  return newest;
}

}  // namespace

std::string newest_baseline(const std::string& directory) {
  return newest_of(directory).folder.string();
}

std::string add_baseline(const std::string& directory, const std::vector<std::string>& files) {
  const fs::path folder =
      fs::path(directory) / fmt::format("{:04}", newest_of(directory).number + 1);
  const fs::path unfinished = fs::path(directory) / fmt::format(".unfinished-{}", getpid());
  try {
    fs::create_directories(directory);
    fs::remove_all(unfinished);  // of a link that somebody put there the link alone
    if (!fs::create_directory(unfinished)) {
      throw fs::filesystem_error("", std::make_error_code(std::errc::file_exists));
    }
    for (size_t i = 0; i < files.size(); ++i) {
      // Ranks of several folders may have files of the same name.
      fs::path target = unfinished / fs::path(files[i]).filename();
      if (fs::exists(target))
        target = unfinished / fmt::format("{}_{}", i, target.filename().string());
      fs::copy_file(files[i], target);
    }
    fs::rename(unfinished, folder);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw Failure(
        fmt::format("diff: cannot add to the baseline {}: {}", directory, error.code().message()));
  }
  return folder.string();
}

}  // namespace gpuprof
