// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/python_packages.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/program_file.h"

namespace gpuprof {
namespace {

namespace fs = std::filesystem;

// What matches <folder>/<start>*/<rest>, by name.
std::vector<std::string> find_folders(const fs::path& folder, const std::string& start,
                                      const std::string& rest) {
  std::vector<std::string> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path found = entry.path() / rest;
    if (entry.path().filename().string().starts_with(start) && fs::is_directory(found, error)) {
      out.push_back(found.string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void append(std::vector<std::string>& out, const std::vector<std::string>& more) {
  for (const std::string& folder : more) {
    if (std::find(out.begin(), out.end(), folder) == out.end()) out.push_back(folder);
  }
}

bool uses_system_packages(const fs::path& environment) {
  std::ifstream file(environment / "pyvenv.cfg");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("include-system-site-packages")) {
      return line.find("true") != std::string::npos;
    }
  }
  return false;
}

}  // namespace

std::string python_of(const std::string& path) {
  if (fs::path(path).filename().string().starts_with("python")) {
    std::ifstream file(path, std::ios::binary);
    char magic[2] = {};
    file.read(magic, 2);
    if (magic[0] != '#') return path;
  }
  std::ifstream file(path);
  std::string line, interpreter, argument;
  if (!std::getline(file, line) || !line.starts_with("#!")) return "";
  std::istringstream(line.substr(2)) >> interpreter >> argument;
  if (fs::path(interpreter).filename() == "env") interpreter = find_program(argument);
  const bool python = fs::path(interpreter).filename().string().starts_with("python");
  return python ? interpreter : "";
}

std::vector<std::string> package_folders(const std::string& interpreter) {
  std::vector<std::string> out;
  if (const char* const path = std::getenv("PYTHONPATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) append(out, {folder});
    }
  }
  const fs::path environment = fs::path(interpreter).parent_path().parent_path();
  append(out, find_folders(environment / "lib", "python3", "site-packages"));
  std::error_code error;
  if (fs::exists(environment / "pyvenv.cfg", error) && !uses_system_packages(environment)) {
    return out;
  }
  if (const char* const home = std::getenv("HOME")) {
    append(out, find_folders(fs::path(home) / ".local/lib", "python3", "site-packages"));
  }
  const fs::path real = fs::canonical(interpreter, error);
  if (error) return out;
  const fs::path prefix = real.parent_path().parent_path();
  append(out, find_folders(prefix / "lib", "python3", "site-packages"));
  if (prefix == "/usr") {  // Debian and what comes from it
    append(out, find_folders("/usr/local/lib", "python3", "dist-packages"));
    append(out, {"/usr/lib/python3/dist-packages"});
  }
  return out;
}

std::vector<PackagedCupti> packaged_cupti(const std::vector<std::string>& folders) {
  std::vector<PackagedCupti> out;
  struct Place {
    const char* package;
    const char* folder;
  };
  for (const Place& place : {Place{"torch", "torch/lib"}, Place{"nvidia/cu13", "nvidia/cu13/lib"},
                             Place{"nvidia/cuda_cupti", "nvidia/cuda_cupti/lib"}}) {
    for (const std::string& folder : folders) {
      for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"}) {
        const fs::path file = fs::path(folder) / place.folder / name;
        std::error_code error;
        if (fs::exists(file, error)) out.push_back({file.string(), place.package});
      }
    }
  }
  return out;
}

}  // namespace gpuprof
