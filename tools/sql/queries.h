// SPDX-License-Identifier: Apache-2.0
// The queries that the command brings, and the views that they ask.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpuprof {

struct Query {
  std::string_view name;
  std::string_view text;           // begins with comments: what it answers
  std::string_view title() const;  // the first of these
};
std::span<const Query> queries();

enum class SqlEngine { duckdb, spark };

// Whether `gpuprof export` wrote there: each export has rows of processes.
bool holds_tables(const std::string& folder);

// Statements that make a view of each table of `folder`, where `gpuprof export` wrote it; an empty
// one where it has no file of a table.
std::string view_statements(const std::string& folder, SqlEngine engine);

}  // namespace gpuprof
