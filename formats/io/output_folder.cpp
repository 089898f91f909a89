// SPDX-License-Identifier: Apache-2.0
#include "formats/io/output_folder.h"

#include <filesystem>

#include "formats/io/unfinished.h"

namespace gpuprof {

bool make_folder(const std::string& path, std::string& error, Links links) {
  std::error_code code;
  if (links == Links::replaced && std::filesystem::is_symlink(path, code)) {
    error = path + ": is a link, which is not followed there; remove it, or give -o another name";
    return false;
  }
  if (!std::filesystem::exists(path, code)) list_until_all_is_there(path);
  std::filesystem::create_directory(path, code);
  if (!code && !std::filesystem::is_directory(path, code) && !code) {
    code = std::make_error_code(std::errc::not_a_directory);
  }
  if (!code) return true;
  error = path + ": cannot be made a directory: " + code.message();
  return false;
}

std::string file_name_part(std::string_view name) {
  constexpr size_t kLongest = 100;
  std::string part(name.substr(0, kLongest));
  for (char& c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  if (part.empty()) return "unknown";
  if (part[0] == '.') part[0] = '_';
  return part;
}

}  // namespace gpuprof
