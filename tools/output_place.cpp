// SPDX-License-Identifier: Apache-2.0
#include "tools/output_place.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace gpuprof {

namespace fs = std::filesystem;

OutputPlace look_at_output(const Config& config, char* const* environment) {
  const JobPlace job = find_job_place(environment);
  char path[4096], run[256];
  SettingError error;
  if (!expand_output(config.output, job, "host", 0, environment, path, sizeof path, error)) {
    return {"", "", error.text};
  }
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored);
  if (expand_output(config.run, job, "host", 0, environment, run, sizeof run, error)) folder /= run;
  while (folder.has_relative_path() && !fs::exists(folder, ignored)) folder = folder.parent_path();
  OutputPlace place{path, folder.string(), ""};
  if (!fs::is_directory(folder, ignored)) {
    place.reason = std::strerror(ENOTDIR);
    return place;
  }
  std::string probe = (folder / ".gpuprof-XXXXXX").string();
  if (::mkdtemp(probe.data())) {
    ::rmdir(probe.c_str());
  } else {
    place.reason = std::strerror(errno);
  }
  return place;
}

}  // namespace gpuprof
