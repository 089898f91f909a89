// SPDX-License-Identifier: Apache-2.0
#include "tools/output_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "formats/core/runs/run_files.h"
#include "formats/core/text.h"

namespace gpuprof {

namespace fs = std::filesystem;

namespace {

// The folder of the run, if its name is known before the program runs; else that of all runs.
fs::path folder_of_run(const fs::path& output, const Config& config, const JobPlace& job,
                       char* const* environment) {
  char run[256] = "";
  SettingError error;
  if (config.run[0] == '\0') {
    copy_text(job.job, run, sizeof run);
  } else if (!expand_output(config.run, job, "host", 0, environment, run, sizeof run, error)) {
    return output;
  }
  if (run[0] == '\0') return output;
  make_folder_name(run);
  return output / run;
}

// What the library asks of a run's folder (collector/base/own_directory.cpp).
std::string why_not_own(const std::string& folder, const std::string& name) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return std::strerror(errno);
  if (info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0) return "";
  return fmt::format(
      "{} belongs to user {} and has mode {:04o}; it must belong to this user ({}) and not be "
      "writable by others",
      name, info.st_uid, info.st_mode & 07777, ::geteuid());
}

}  // namespace

OutputPlace look_at_output(const Config& config, char* const* environment) {
  const JobPlace job = find_job_place(environment);
  char path[4096];
  SettingError error;
  if (!expand_output(config.output, job, "host", 0, environment, path, sizeof path, error)) {
    return {"", "", error.text};
  }
  std::error_code ignored;
  const fs::path run = folder_of_run(fs::absolute(path, ignored), config, job, environment);
  fs::path folder = run;
  while (folder.has_relative_path() && !fs::exists(folder, ignored)) folder = folder.parent_path();
  OutputPlace place{path, folder.string(), ""};
  if (!fs::is_directory(folder, ignored)) {
    place.reason = std::strerror(ENOTDIR);
    return place;
  }
  const bool is_output = fs::equivalent(folder, fs::absolute(path, ignored), ignored);
  if (folder == run && !is_output) place.reason = why_not_own(folder, "it");
  if (!place.reason.empty()) return place;
  std::string probe = (folder / ".gpuprof-XXXXXX").string();
  if (::mkdtemp(probe.data())) {
    place.reason = why_not_own(probe, "a folder that gpuprof makes in it");
    ::rmdir(probe.c_str());
  } else {
    place.reason = std::strerror(errno);
  }
  return place;
}

}  // namespace gpuprof
