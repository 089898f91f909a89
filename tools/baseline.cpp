// SPDX-License-Identifier: Apache-2.0
#include "tools/baseline.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "tools/console.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& name) {
  return !name.empty() && name.size() <= 9 &&
         name.find_first_not_of("0123456789") == std::string::npos;
}

struct Run {
  unsigned long number;
  fs::path folder;
};

// By number.
std::vector<Run> runs_of(const std::string& directory) {
  std::vector<Run> runs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_number(name) || std::stoul(name) == 0 || !entry.is_directory(error)) continue;
    runs.push_back({std::stoul(name), entry.path()});
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::pair(a.number, a.folder) < std::pair(b.number, b.folder);
  });
  return runs;
}

// In a run's folder: the names of the files that were copied there, each ended by a NUL.
constexpr const char* kAdded = ".gpuprof-added";

void write_added(const fs::path& run, const std::vector<std::string>& names) {
  std::ofstream list(run / kAdded, std::ios::binary);
  for (const std::string& name : names) list << name << '\0';
  list.close();
  if (!list) throw fs::filesystem_error("", std::make_error_code(std::errc::io_error));
}

// All that a run's folder holds, the list last; empty: something in it was not copied there.
std::vector<fs::path> added_alone(const fs::path& run) {
  std::ifstream list(run / kAdded, std::ios::binary);
  if (!list || fs::is_symlink(run)) return {};
  std::set<std::string> names;
  for (std::string name; std::getline(list, name, '\0');) names.insert(name);
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (name == kAdded) continue;
    if (!names.contains(name)) return {};
    out.push_back(entry.path());
  }
  out.push_back(run / kAdded);
  return out;
}

// What cannot be removed stays for the next time.
std::vector<std::string> remove_old_runs(const std::string& directory) {
  std::vector<std::string> removed;
  std::vector<Run> runs = runs_of(directory);
  runs.resize(runs.size() - std::min(runs.size(), kRunsKept));
  for (const Run& run : runs) {
    try {
      const std::vector<fs::path> files = added_alone(run.folder);
      if (files.empty()) continue;
      for (const fs::path& file : files) fs::remove(file);
      fs::remove(run.folder);
      removed.push_back(run.folder.string());
    } catch (const fs::filesystem_error&) {
    }
  }
  return removed;
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
  const std::vector<Run> runs = runs_of(directory);
  return runs.empty() ? "" : runs.back().folder.string();
}

AddedRun add_baseline(const std::string& directory, const std::vector<std::string>& files) {
  const std::vector<Run> runs = runs_of(directory);
  const fs::path folder =
      fs::path(directory) / fmt::format("{:04}", runs.empty() ? 1 : runs.back().number + 1);
  const fs::path unfinished = fs::path(directory) / fmt::format(".unfinished-{}", getpid());
  try {
    fs::create_directories(directory);
    fs::remove_all(unfinished);  // of a link that somebody put there the link alone
    if (!fs::create_directory(unfinished)) {
      throw fs::filesystem_error("", std::make_error_code(std::errc::file_exists));
    }
    std::vector<std::string> added;
    for (const Together& each : by_folder(files)) {
      const std::string prefix = prefix_for(each, unfinished);
      for (const fs::path& name : each.names) {
        added.push_back(prefix + name.string());
        fs::copy_file(each.folder / name, unfinished / added.back());
      }
    }
    write_added(unfinished, added);
    fs::rename(unfinished, folder);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw Failure(
        fmt::format("diff: cannot add to the baseline {}: {}", directory, error.code().message()));
  }
  return {folder.string(), remove_old_runs(directory)};
}

}  // namespace gpuprof
