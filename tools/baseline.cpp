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

// Files that lie together, whose names are to go on belonging together: the rest of a part is in
// the ring of its process's name.
struct Together {
  fs::path folder;
  std::vector<fs::path> names;
};

std::vector<Together> by_folder(const std::vector<std::string>& files) {
  std::vector<Together> out;
  for (const std::string& file : files) {
    const fs::path folder = fs::path(file).parent_path(), name = fs::path(file).filename();
    const auto takes = [&](const Together& each) {  // not a file that was named twice
      return each.folder == folder &&
             std::find(each.names.begin(), each.names.end(), name) == each.names.end();
    };
    const auto at = std::find_if(out.begin(), out.end(), takes);
    if (at == out.end()) {
      out.push_back({folder, {name}});
    } else {
      at->names.push_back(name);
    }
  }
  return out;
}

// What goes before all of these names, so that none is taken in `target`: ranks of several folders
// may have files of the same name.
std::string prefix_for(const Together& files, const fs::path& target) {
  std::string prefix;
  const auto is_taken = [&](const fs::path& name) {
    return fs::exists(target / (prefix + name.string()));
  };
  for (size_t number = 1; std::any_of(files.names.begin(), files.names.end(), is_taken); ++number) {
    prefix = fmt::format("{}_", number);
  }
  return prefix;
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
    for (const Together& each : by_folder(files)) {
      const std::string prefix = prefix_for(each, unfinished);
      for (const fs::path& name : each.names) {
        fs::copy_file(each.folder / name, unfinished / (prefix + name.string()));
      }
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
