// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/diagnosis.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "formats/core/settings.h"
#include "tools/console.h"
#include "tools/doctor/python_packages.h"
#include "tools/library_path.h"
#include "tools/output_place.h"
#include "tools/program_file.h"

namespace gpuprof {
namespace {

using State = Finding::State;
using Findings = std::vector<Finding>;

std::string output_of(const std::string& shell_command) {
  std::string out;
  FILE* const pipe = ::popen(shell_command.c_str(), "r");
  if (!pipe) return out;
  char part[4096];
  for (size_t got; (got = std::fread(part, 1, sizeof part, pipe)) != 0;) out.append(part, got);
  ::pclose(pipe);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// ld.so says on standard error that it ignores a library, and starts the program all the same.
void check_library(Findings& out) {
  std::string path;
  try {
    path = find_preloadable_library();
  } catch (const Failure& failure) {
    out.push_back({State::bad, "library", failure.what(), ""});
    return;
  }
  const std::string said = output_of("LD_PRELOAD=" + shell_quoted(path) + " /bin/true 2>&1");
  if (said.empty()) {
    out.push_back({State::good, "library", path, ""});
  } else {
    out.push_back(
        {State::bad, "library", said, "nothing is recorded on this machine with this build"});
  }
}

bool check_settings(Config& config, Findings& out) {
  const auto settings = std::make_unique<Settings>();
  SettingError error;
  if (!settings->load_all(environ, error, nullptr, nullptr) ||
      !settings->parse(find_job_place(environ).rank, config, error)) {
    out.push_back({State::bad, "settings", error.text, "a program would run unprofiled"});
    return false;
  }
  if (config.mode == Mode::off) {
    out.push_back({State::bad, "settings", "GPUPROF_MODE=off", "nothing is recorded; unset it"});
  } else if (!config.rank_selected) {
    out.push_back({State::bad, "settings", "GPUPROF_RANKS leaves this rank out", ""});
  } else {
    out.push_back({State::good, "settings", "valid; gpuprof config prints them", ""});
  }
  return true;
}

void check_output(const Config& config, Findings& out) {
  OutputPlace place = look_at_output(config, environ);
  if (place.path.empty()) {
    out.push_back({State::limited, "output", place.reason, ""});
    return;
  }
  struct statvfs space {};
  if (place.reason.empty() && ::statvfs(place.folder.c_str(), &space) != 0) {
    place.reason = std::strerror(errno);
  }
  if (!place.reason.empty()) {
    out.push_back(
        {State::bad, "output", fmt::format("{} cannot hold dumps: {}", place.folder, place.reason),
         "set GPUPROF_OUTPUT to a directory that can; docs/RUNNING.md has mount options"});
    return;
  }
  const uint64_t free = uint64_t{space.f_bavail} * space.f_frsize;
  const uint64_t wanted =
      (uint64_t{config.buffer_mb} << 20) + static_cast<uint64_t>(config.schedule.max_mb * 1e6);
  out.push_back({free < wanted ? State::limited : State::good, "output",
                 fmt::format("{}, {} free", place.path, format_bytes(free)),
                 free < wanted ? fmt::format("a process may need {}", format_bytes(wanted)) : ""});
}

// What gpuprof-probe prints for `arguments`; empty where it cannot be run, and then `why` says so.
std::string ask_probe(const std::string& arguments, std::string& why) {
  try {
    const std::string out =
        output_of(shell_quoted(find_probe()) + " " + arguments + " 2>/dev/null");
    if (out.empty()) why = "gpuprof-probe, which opens it, did not end well";
    return out;
  } catch (const Failure& failure) {
    why = failure.what();
  }
  return "";
}

void check_driver(Findings& out) {
  std::string why;
  const std::string said = ask_probe("driver", why);
  int opened = 0, init = -1, version = 0, devices = -1;
  if (std::sscanf(said.c_str(), "opened=%d init=%d version=%d devices=%d", &opened, &init, &version,
                  &devices) != 4) {
    out.push_back({State::limited, "driver", "not looked at: " + why, "nvidia-smi tells more"});
  } else if (!opened) {
    out.push_back({State::bad, "driver", "there is no libcuda.so.1", "no CUDA program runs here"});
  } else if (version == 0 || devices < 0) {
    out.push_back({State::bad, "driver",
                   fmt::format("libcuda.so.1 is there, but cuInit fails ({})", init),
                   "nvidia-smi tells more"});
  } else {
    out.push_back({devices ? State::good : State::bad, "driver",
                   fmt::format("CUDA {}.{}, {} {}", version / 1000, version % 1000 / 10, devices,
                               devices == 1 ? "GPU" : "GPUs"),
                   devices ? "" : "no GPU is visible; see CUDA_VISIBLE_DEVICES"});
  }
}

// Of the libcupti in `path`; "": it is none that can be loaded.
std::string cupti_version_of(const std::string& path) {
  std::string why;
  int opened = 0;
  uint32_t version = 0;
  const std::string said = ask_probe("cupti " + shell_quoted(path), why);
  const int found = std::sscanf(said.c_str(), "opened=%d version=%u", &opened, &version);
  if (found != 2 || !opened) return "";
  return version ? fmt::format("version {}", version) : "its version is not told without a driver";
}

// A program's own copy, and the one beside its runtime, come first: check_packages().
void check_cupti(const Config& config, Findings& out) {
  const std::string wanted = config.cupti;
  if (wanted == "off") {
    out.push_back({State::limited, "CUPTI", "GPUPROF_CUPTI=off", "calls only, no GPU times"});
    return;
  }
  std::vector<std::string> places = {wanted};
  if (wanted.empty()) {
    places = {"libcupti.so.13", "libcupti.so.12",
              "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
              "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"};
  }
  for (const std::string& place : places) {
    const std::string version = cupti_version_of(place);
    if (version.empty()) continue;
    out.push_back({State::good, "CUPTI", fmt::format("{}, {}", place, version), ""});
    return;
  }
  out.push_back({State::limited, "CUPTI",
                 wanted.empty() ? "not on the library path nor in /usr/local/cuda"
                                : fmt::format("GPUPROF_CUPTI=\"{}\" cannot be loaded", wanted),
                 "GPU times need it: from the program's own packages, beside its CUDA runtime, or "
                 "named by GPUPROF_CUPTI"});
}

// The libcupti that a Python program's packages bring.
void check_packages(const std::string& interpreter, Findings& out) {
  const std::vector<std::string> folders = package_folders(interpreter);
  const std::vector<PackagedCupti> found = packaged_cupti(folders);
  for (const PackagedCupti& each : found) {
    const std::string version = cupti_version_of(each.file);
    const bool first = &each == &found[0];
    if (version.empty()) {
      out.push_back({State::limited, "packages", each.file + " cannot be loaded", ""});
    } else {
      out.push_back({State::good, "packages",
                     fmt::format("{} ({}), {}", each.file, each.of, version),
                     first ? "used unless the program loads another, or GPUPROF_CUPTI names one"
                           : "not used while the one above is there"});
    }
  }
  if (!found.empty()) return;
  for (const std::string& folder : folders) {
    std::error_code ignored;
    if (!std::filesystem::exists(std::filesystem::path(folder) / "torch", ignored)) continue;
    out.push_back({State::limited, "packages", "torch is in " + folder + ", but no libcupti.so",
                   "a PyTorch without CUDA, or CUPTI is elsewhere: see CUPTI"});
  }
}

void check_clock(Findings& out) {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  if (!(file >> source)) return;
#if defined(__x86_64__)
  const std::string trusted = "tsc", counter = "the TSC";
#elif defined(__aarch64__)
  const std::string trusted = "arch_sys_counter", counter = "CNTVCT_EL0";
#endif
  if (source == trusted) {
    out.push_back({State::good, "clock", "the kernel trusts " + counter, ""});
  } else {
    out.push_back({State::limited, "clock",
                   fmt::format("the kernel uses {}, not {}", source, counter),
                   "CLOCK_MONOTONIC is used: a recorded call costs more"});
  }
}

// CUDA's driver loads the library: what that way does not see.
void check_injection(const std::string& path, Findings& out) {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  if (preloaded && std::strstr(preloaded, "libgpuprof")) {
    out.push_back({State::good, "injection",
                   "CUDA_INJECTION64_PATH and LD_PRELOAD name the library",
                   "it is loaded once, and sees what a preloaded one does"});
    return;
  }
  out.push_back({State::good, "injection",
                 fmt::format("CUDA_INJECTION64_PATH={}: CUDA's driver loads the library when it "
                             "starts; LD_PRELOAD is not needed",
                             path),
                 ""});
  out.push_back({State::limited, "injection",
                 "calls before the first one that starts CUDA, and functions that a program looked "
                 "up before it (a CUDA runtime linked into it does)",
                 "CUPTI shows such calls while a window is open; they count as no steps"});
  out.push_back({State::limited, "injection",
                 "kernels registered before CUDA starts have CUPTI's name",
                 "none where GPUPROF_CUPTI=off, and kernel:REGEX does not match them"});
  const char* const nvtx = std::getenv("NVTX_INJECTION64_PATH");
  if (!nvtx || !is_our_library(nvtx)) {
    out.push_back({State::limited, "injection",
                   "NVTX ranges of a library that uses NVTX before CUDA starts",
                   "set NVTX_INJECTION64_PATH to the library, too"});
  }
}

void check_others(const std::string& injection, Findings& out) {
  if (!injection.empty() && is_our_library(injection)) {
    check_injection(injection, out);
  } else if (!injection.empty()) {
    out.push_back({State::limited, "others", "CUDA_INJECTION64_PATH=" + injection,
                   "that tool may hold CUPTI; then GPU times are missing while it does"});
  }
  const char* const nvtx = std::getenv("NVTX_INJECTION64_PATH");
  if (nvtx && *nvtx && !is_our_library(nvtx)) {
    out.push_back({State::limited, "others", fmt::format("NVTX_INJECTION64_PATH={}", nvtx),
                   "NVTX ranges go to that tool, not to gpuprof"});
  }
}

}  // namespace

std::vector<Finding> diagnose_machine() {
  Findings out;
  // The driver would load it into this very process.
  const char* const value = std::getenv("CUDA_INJECTION64_PATH");
  const std::string injection = value ? value : "";
  ::unsetenv("CUDA_INJECTION64_PATH");
  check_library(out);
  const auto config = std::make_unique<Config>();
  if (check_settings(*config, out)) {
    check_output(*config, out);
    check_driver(out);
    check_cupti(*config, out);
  } else {
    check_driver(out);
  }
  check_clock(out);
  check_others(injection, out);
  return out;
}

void diagnose_program(const std::string& command, Findings& out) {
  const std::string path = find_program(command);
  if (path.empty() || ::access(path.c_str(), X_OK) != 0) {
    out.push_back({State::bad, "program",
                   fmt::format("\"{}\" is no program that can be run here", command), ""});
    return;
  }
  const std::string reason = why_not_preloadable(path);
  if (!reason.empty()) {
    const bool cuda = cuda_use_of(path).runtime_inside;
    out.push_back(
        {State::bad, "program", fmt::format("{}: {}", path, reason),
         fmt::format("it runs unprofiled{}", cuda ? ", and none of its CUDA calls is seen" : "")});
    return;
  }
  out.push_back({State::good, "program", path + ": the library can be preloaded", ""});
  const CudaUse use = cuda_use_of(path);
  for (const std::string& name : use.linked) {
    out.push_back({State::good, "program", "is linked to " + name + ": its calls are seen", ""});
  }
  if (use.runtime_inside) {
    out.push_back({State::good, "program",
                   "asks the driver for its functions itself, as a CUDA runtime linked into a "
                   "program does: seen as calls of the driver",
                   ""});
  }
  const std::string python = python_of(path);
  if (!python.empty()) check_packages(python, out);
  if (use.own_namespaces) {
    out.push_back({State::limited, "program",
                   "calls dlmopen: hooks do not see what the libraries that it opens so call",
                   "GPU times of that are there while a window is open, if another call has opened "
                   "it; dlopen is seen"});
  }
  if (use.linked.empty() && !use.runtime_inside) {
    out.push_back({State::good, "program",
                   "brings no CUDA library itself: what it opens while it runs is seen", ""});
  }
}

void diagnose_what_escapes(Findings& out) {
  out.push_back({State::limited, "escapes",
                 "libraries opened by dlmopen (a namespace of their own)",
                 "hooks do not see them; CUPTI does while a window is open"});
  out.push_back({State::limited, "escapes",
                 "constructors that run while a library is opened with RTLD_DEEPBIND", "as above"});
}

}  // namespace gpuprof
