// SPDX-License-Identifier: Apache-2.0
// Settings of an environment that a test makes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/core/settings.h"

namespace gpuprof::test {

// A NULL-terminated NAME=VALUE array.
class Environment {
 public:
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

// The settings that `entries` of the environment give, or the error's text.
inline std::string parse_environment(std::vector<std::string> entries, Config& config,
                                     int rank = 0) {
  Settings settings;
  SettingError error{};
  if (!settings.load_environment(Environment(std::move(entries)).get(), error, nullptr, nullptr) ||
      !settings.parse(rank, config, error)) {
    return error.text;
  }
  return "";
}

inline std::string error_of(const std::string& entry) {
  Config config;
  return parse_environment({entry}, config);
}

}  // namespace gpuprof::test
