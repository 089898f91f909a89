// SPDX-License-Identifier: Apache-2.0
// Directories that exporters write into.
#pragma once

#include <string>
#include <string_view>

#include "formats/io/file_bytes.h"

namespace gpuprof {

// Makes a directory unless it is there; the one above it must be. False: `error` says why in a line
// that names it; also if it is a link, and links are not followed.
bool make_folder(const std::string& path, std::string& error, Links links = Links::followed);

// `name` as one component of a path: what is not a letter, a digit, '-', '_' or '.' becomes '_'.
std::string file_name_part(std::string_view name);

}  // namespace gpuprof
