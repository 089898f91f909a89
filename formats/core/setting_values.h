// SPDX-License-Identifier: Apache-2.0
// How the text of each setting is read. Internal to the settings: others use Settings::parse, and
// read_ranks() for other ranks than their own.
// Each reader returns false and fills `reason` with the part of the message after `NAME="value": `.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "formats/core/settings.h"

namespace gpuprof {

struct Reason {
  char text[384];
};

bool read_mode(std::string_view text, Mode& mode, Reason& reason);
bool read_log_level(std::string_view text, LogLevel& level, Reason& reason);
bool read_schedule(std::string_view text, ScheduleSpec& spec, Reason& reason);
bool read_step(std::string_view text, StepSpec& spec, Reason& reason);  // step_values.cpp
// Sets activities and stacks; the two after it change or replace what is there.
bool read_preset(std::string_view text, Config& config, Reason& reason);
bool read_activities(std::string_view text, Config& config, Reason& reason);
bool read_stacks(std::string_view text, uint32_t (&every)[kStackKindCount], Reason& reason);
// A bit per Redact.
bool read_redact(std::string_view text, uint32_t& what, Reason& reason);
bool read_switch(std::string_view text, bool& on, Reason& reason);
// Whether a list of numbers and ranges of them ("0,8-15") has a number; false: it is no such list.
bool find_in_ranges(std::string_view text, uint64_t number, bool& found);
bool read_keep(std::string_view text, KeepSpec& keep, Reason& reason);
bool read_ranks(std::string_view text, int rank, bool& selected, Reason& reason);
bool read_buffer_mb(std::string_view text, uint32_t& megabytes, Reason& reason);
bool read_gpu_times(std::string_view text, GpuTimes& times, Reason& reason);
bool read_cupti(std::string_view text, char* out, size_t size, Reason& reason);
// "none" stands for "".
bool read_command(std::string_view text, char* out, size_t size, Reason& reason);
// "prometheus:" and a directory, which may hold %-sequences; "none" stands for "".
bool read_metrics(std::string_view text, char* out, size_t size, Reason& reason);
// Percent; "none" stands for 0.
bool read_budget(std::string_view text, double& percent, Reason& reason);
bool read_run(std::string_view text, char* out, size_t size, Reason& reason);
// A directory whose name may hold %-sequences. `automatic`: whether "auto" stands for "".
bool read_directory(std::string_view text, bool automatic, char* out, size_t size, Reason& reason);

}  // namespace gpuprof
