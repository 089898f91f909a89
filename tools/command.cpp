// SPDX-License-Identifier: Apache-2.0
#include "tools/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "tools/console.h"

namespace gpuprof {
namespace {

// "-o,--output", or what it is called without one.
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ",-") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ",--") + name;
  return out;
}

void print_command_help(const CLI::App& app, const Command& command) {
  put(fmt::format("{}\n\nUsage: gpuprof {}\n\n", command.usage, command.synopsis));
  for (const CLI::Option* option : app.get_options()) {
    const std::string value = option->get_default_str();
    put_line("  {:<16} {}{}", names_of(*option), option->get_description(),
             value.empty() ? "" : " (default: " + value + ")");
  }
  if (!app.get_footer().empty()) put("\n" + app.get_footer() + "\n");
}

std::function<void(const CLI::App&)>& looker() {
  static std::function<void(const CLI::App&)> look;
  return look;
}

}  // namespace

void look_at_options(std::function<void(const CLI::App&)> look) { looker() = std::move(look); }

bool parse_arguments(CLI::App& app, const Command& command, int count, char** arguments,
                     int& code) {
  app.set_help_flag("-h,--help", "this text");
  code = kExitDone;
  if (looker()) {
    looker()(app);
    return false;
  }
  try {
    app.parse(count, arguments);
    return true;
  } catch (const CLI::CallForHelp&) {
    print_command_help(app, command);
    code = kExitDone;
  } catch (const CLI::ParseError& error) {
    print_error(
        fmt::format("{}: {}; see gpuprof {} --help", command.name, error.what(), command.name));
    code = kExitBadUsage;
  }
  return false;
}

CLI::Validator number_between(double low, double high, bool whole) {
  const auto check = [=](std::string& text) -> std::string {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool number = read.ec == std::errc() && read.ptr == end;
    if (number && value >= low && value <= high && (!whole || value == std::floor(value))) {
      return {};
    }
    return fmt::format("\"{}\" is not a {} from {} to {}", text, whole ? "whole number" : "number",
                       low, high);
  };
  return CLI::Validator(check, "", "");
}

CLI::Validator one_of(std::vector<std::string> words) {
  // The pages of options read the words out of the description (option_pages.cpp).
  const std::string description = fmt::format("{{{}}}", fmt::join(words, ","));
  const auto check = [words = std::move(words)](std::string& text) -> std::string {
    for (const std::string& word : words) {
      if (CLI::detail::to_lower(text) != CLI::detail::to_lower(word)) continue;
      text = word;
      return {};
    }
    return fmt::format("\"{}\" is none of {}", text, fmt::join(words, ", "));
  };
  return CLI::Validator(check, description, "");
}

}  // namespace gpuprof
