// SPDX-License-Identifier: Apache-2.0
// Directories that exporters write into.
#pragma once

#include <string>
#include <string_view>

namespace gpuprof {

// Makes a directory unless it is there; the one above it must be. False: `error` says why in a line
// that names it.
bool make_folder(const std::string& path, std::string& error);

// `name` as one component of a path: what is not a letter, a digit, '-', '_' or '.' becomes '_'.
std::string file_name_part(std::string_view name);

}  // namespace gpuprof
