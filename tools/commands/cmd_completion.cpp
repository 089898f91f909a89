// SPDX-License-Identifier: Apache-2.0
// gpuprof completion: a shell's completions, or the man page, from the tables of options.
#include <CLI/CLI.hpp>
#include <string>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/option_pages.h"

namespace gpuprof {

int run_completion(const Command& command, int count, char** arguments) {
  CLI::App app;
  std::string shell;
  app.add_option("SHELL", shell, "bash, zsh or fish; or man, for the manual page")
      ->required()
      ->check(one_of({"bash", "zsh", "fish", "man"}));
  app.footer(
      "To have it in this shell: source <(gpuprof completion bash); in zsh, after compinit, source "
      "<(gpuprof completion zsh); in fish, gpuprof completion fish | source");
  int code = kExitDone;
  if (!parse_arguments(app, command, count, arguments, code)) return code;
  const auto pages = command_pages(all_commands());
  if (shell == "bash") put(bash_completion(pages));
  if (shell == "zsh") put(zsh_completion(pages));
  if (shell == "fish") put(fish_completion(pages));
  if (shell == "man") put(man_page(pages, version()));
  return kExitDone;
}

}  // namespace gpuprof
