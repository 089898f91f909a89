// SPDX-License-Identifier: Apache-2.0
// The man page and the shells' completions, from the same tables that parse the arguments.
#pragma once

#include <string>
#include <vector>

namespace gpuprof {

struct Command;

// An option of a command, or, where `names` is empty, what it takes without one.
struct OptionRow {
  std::vector<std::string> names;  // "-o", "--output"
  std::string positional;          // "INPUT"
  std::string help, default_text;
  std::vector<std::string> choices;  // all values that it takes; empty: any
  bool has_value = false;
  bool takes_many = false;  // a positional that stands for all that follow
};

struct CommandPage {
  const Command* command;
  std::vector<OptionRow> options;
  std::string footer;
};

// Each command's options. Parses and runs nothing.
std::vector<CommandPage> command_pages(const std::vector<const Command*>& commands);

// roff, by man(7). `version` of gpuprof.
std::string man_page(const std::vector<CommandPage>& pages, const std::string& version);
// Scripts for the shells of these names.
std::string bash_completion(const std::vector<CommandPage>& pages);
std::string zsh_completion(const std::vector<CommandPage>& pages);
std::string fish_completion(const std::vector<CommandPage>& pages);

}  // namespace gpuprof
