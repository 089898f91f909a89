// SPDX-License-Identifier: Apache-2.0
#include "tools/option_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "formats/core/settings.h"
#include "tools/command.h"

namespace gpuprof {
namespace {

// "TEXT:{text,json}" -> text, json.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (option.get_positional()) row.positional = option.get_name(true);
  row.help = option.get_description();
  row.default_text = option.get_default_str();
  row.has_value = option.get_items_expected_max() != 0;
  row.takes_many = option.get_items_expected_max() > 1;
  if (row.has_value) row.choices = choices_of(option);
  return row;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Text of a man page: a backslash is itself, a minus one that can be copied, and no line a request.
std::string roff(const std::string& text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n.", "\n\\&.");
  out = replaced(out, "\n'", "\n\\&'");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string names_of(const OptionRow& row) {
  return row.names.empty() ? row.positional : fmt::format("{}", fmt::join(row.names, ", "));
}

std::string in_shell_quotes(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string words(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, " "));
}

std::vector<std::string> all_names(const CommandPage& page) {
  std::vector<std::string> out;
  for (const OptionRow& row : page.options) {
    out.insert(out.end(), row.names.begin(), row.names.end());
  }
  return out;
}

// What a command takes without an option, where that is one of a few words.
std::vector<std::string> positional_choices(const CommandPage& page) {
  for (const OptionRow& row : page.options) {
    if (row.names.empty()) return row.choices;
  }
  return {};
}

// The shells call a command that takes another one as its arguments like this.
bool takes_a_program(const CommandPage& page) {
  return std::string_view(page.command->synopsis).find("COMMAND...") != std::string_view::npos;
}

void collect(const CLI::App& app, std::vector<CommandPage>& pages) {
  for (const CLI::Option* const option : app.get_options()) {
    pages.back().options.push_back(row_of(*option));
  }
  pages.back().footer = app.get_footer();
}

}  // namespace

std::vector<CommandPage> command_pages(const std::vector<const Command*>& commands) {
  std::vector<CommandPage> pages;
  for (const Command* const command : commands) {
    pages.push_back({command, {}, ""});
    std::string name = command->name;
    char* arguments[] = {name.data(), nullptr};
    look_at_options([&](const CLI::App& app) { collect(app, pages); });
    command->run(*command, 1, arguments);
    look_at_options(nullptr);
  }
  return pages;
}

std::string man_page(const std::vector<CommandPage>& pages, const std::string& version) {
  std::string out = fmt::format(
      ".TH GPUPROF 1 \"\" \"gpuprof {}\" \"User Commands\"\n.ad l\n.SH NAME\n"
      "gpuprof \\- record what a GPU program does, and show what is slow, and why\n.SH SYNOPSIS\n",
      version);
  auto end = std::back_inserter(out);
  for (const CommandPage& page : pages) {
    fmt::format_to(end, ".B gpuprof\n{}\n.br\n", roff(page.command->synopsis));
  }
  out += ".SH COMMANDS\n";
  for (const CommandPage& page : pages) {
    fmt::format_to(end, ".SS {}\n{}.\n.PP\n", page.command->name, roff(page.command->usage));
    for (const OptionRow& row : page.options) {
      fmt::format_to(end, ".TP\n.B {}\n{}", roff(names_of(row)), roff(row.help));
      if (!row.default_text.empty()) {
        fmt::format_to(end, " (default: {})", roff(row.default_text));
      }
      out += '\n';
    }
    if (!page.footer.empty()) {
      fmt::format_to(end, ".PP\n.nf\n{}\n.fi\n", roff(page.footer));
    }
  }
  out += ".SH ENVIRONMENT\n";
  for (const SettingRow& row : kSettingRows) {
    fmt::format_to(end, ".TP\n.B {}\n{} (default: {}; allowed: {})\n", row.name, roff(row.help),
                   row.default_value[0] ? roff(row.default_value) : "none", roff(row.allowed));
  }
  fmt::format_to(end,
                 ".SH FILES\n.TP\n.I {}\nsettings of the machine, a line NAME=VALUE each\n"
                 ".SH EXIT STATUS\n0 done. 1 a gate failed, something is missing (doctor), or some "
                 "processes did not take a request (trigger). 2 a wrong argument, or no input that "
                 "can be read. 128 + n: ended by signal n. gpuprof run exits as its program does, "
                 "with 127 if there is none of that name, and 126 if it cannot be started.\n",
                 kSystemSettingsFile);
  return out;
}

std::string bash_completion(const std::vector<CommandPage>& pages) {
  std::vector<std::string> commands;
  for (const CommandPage& page : pages) commands.push_back(page.command->name);
  std::string out = fmt::format(
      "# bash completion for gpuprof; made by: gpuprof completion bash\n"
      "_gpuprof() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} i\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  local options='' words='' program=\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      words(commands));
  auto end = std::back_inserter(out);
  for (const CommandPage& page : pages) {
    fmt::format_to(end, "    {})\n      options='{}' words='{}' program={}\n", page.command->name,
                   words(all_names(page)), words(positional_choices(page)),
                   takes_a_program(page) ? "yes" : "");
    out += "      case $previous in\n";
    for (const OptionRow& row : page.options) {
      if (!row.has_value || row.names.empty()) continue;
      fmt::format_to(end, "        {}) {}; return ;;\n", fmt::join(row.names, "|"),
                     row.choices.empty()
                         ? std::string("mapfile -t COMPREPLY < <(compgen -f -- \"$current\")")
                         : fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$current\")",
                                       words(row.choices)));
    }
    out += "      esac ;;\n";
  }
  out +=
      "  esac\n"
      "  if [ -n \"$program\" ]; then\n"
      "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
      "      [ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
      "      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); return; "
      "fi\n"
      "      mapfile -t COMPREPLY < <(compgen -c -f -- \"$current\")\n"
      "      return\n"
      "    done\n"
      "  fi\n"
      "  if [ -n \"$words\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words $options\" -- \"$current\")\n"
      "  elif [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _gpuprof gpuprof\n";
  return out;
}

std::string zsh_completion(const std::vector<CommandPage>& pages) {
  // What _arguments reads in a specification.
  const auto plain = [](const std::string& text) {
    std::string out = replaced(text, "\\", "\\\\");
    for (const char* special : {"[", "]", ":"})
      out = replaced(out, special, std::string("\\") + special);
    return out;
  };
  std::string out =
      "#compdef gpuprof\n# zsh completion for gpuprof; made by: gpuprof completion zsh\n"
      "_gpuprof() {\n  local -a commands\n  commands=(\n";
  auto end = std::back_inserter(out);
  for (const CommandPage& page : pages) {
    fmt::format_to(
        end, "    {}\n",
        in_shell_quotes(std::string(page.command->name) + ":" + plain(page.command->usage)));
  }
  out +=
      "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  local name=$words[2]\n  shift words; (( CURRENT-- ))\n  case $name in\n";
  for (const CommandPage& page : pages) {
    fmt::format_to(end, "    {})\n      _arguments", page.command->name);
    int place = 0;  // _arguments takes one "all that follow" alone
    for (const OptionRow& row : page.options) {
      const std::string value = row.choices.empty() ? "_files" : "(" + words(row.choices) + ")";
      for (const std::string& name : row.names) {
        fmt::format_to(end, " \\\n        {}",
                       in_shell_quotes(fmt::format("*{}[{}]{}", name, plain(row.help),
                                                   row.has_value ? ":value:" + value : "")));
      }
      if (row.names.empty()) {
        fmt::format_to(
            end, " \\\n        {}",
            in_shell_quotes(fmt::format("{}:{}:{}", row.takes_many ? "*" : std::to_string(++place),
                                        plain(row.positional), value)));
      }
    }
    if (takes_a_program(page)) out += " \\\n        '*:: :_normal'";
    out += " ;;\n";
  }
  // zsh runs a file of its function path as the function that it defines; a sourced one only makes
  // it known.
  out +=
      "  esac\n}\n"
      "if [ \"$funcstack[1]\" = _gpuprof ]; then _gpuprof \"$@\"; else compdef _gpuprof gpuprof; "
      "fi\n";
  return out;
}

std::string fish_completion(const std::vector<CommandPage>& pages) {
  const auto quoted = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string out =
      "# fish completion for gpuprof; made by: gpuprof completion fish\n"
      "complete -c gpuprof -n __fish_use_subcommand -l help -d 'the commands'\n"
      "complete -c gpuprof -n __fish_use_subcommand -l version -d 'the version'\n";
  auto end = std::back_inserter(out);
  for (const CommandPage& page : pages) {
    const std::string name = page.command->name;
    fmt::format_to(end, "complete -c gpuprof -f -n __fish_use_subcommand -a {} -d {}\n", name,
                   quoted(page.command->usage));
    const std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", name);
    for (const OptionRow& row : page.options) {
      fmt::format_to(end, "complete -c gpuprof -n {}", condition);
      for (const std::string& option : row.names) {
        fmt::format_to(end, " {} {}", option.starts_with("--") ? "-l" : "-s",
                       option.substr(option.find_first_not_of('-')));
      }
      if (!row.choices.empty()) fmt::format_to(end, " -f -a {}", quoted(words(row.choices)));
      if (row.has_value && !row.names.empty()) out += row.choices.empty() ? " -r -F" : " -r";
      fmt::format_to(end, " -d {}\n", quoted(row.help));
    }
    if (takes_a_program(page)) {
      fmt::format_to(end,
                     "complete -c gpuprof -n {} -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
                     condition);
    }
  }
  return out;
}

}  // namespace gpuprof
