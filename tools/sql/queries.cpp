// SPDX-License-Identifier: Apache-2.0
#include "tools/sql/queries.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/parquet/schema.h"

#define QUERY(name) extern "C" const char gpuprof_sql_##name[], gpuprof_sql_##name##_end[];
#include "tools/sql/queries.def"
#undef QUERY

namespace gpuprof {
namespace {

namespace fs = std::filesystem;
using namespace parquet_export;

// In a literal of the engine's.
std::string quoted(const std::string& text, SqlEngine engine) {
  std::string out = "'";
  for (const char c : text) {
    if (engine == SqlEngine::spark && (c == '\'' || c == '\\')) out += '\\';
    if (engine == SqlEngine::duckdb && c == '\'') out += '\'';
    out += c;
  }
  return out + "'";
}

const char* sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::id:
    case ColumnType::time:
    case ColumnType::int64: return "BIGINT";
    case ColumnType::int32:
    case ColumnType::serial: return "INT";
    case ColumnType::real: return "DOUBLE";
    case ColumnType::flag: return "BOOLEAN";
    case ColumnType::text: return "STRING";
  }
  return "";
}

bool has_files(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".parquet") return true;
  }
  return false;
}

std::string empty_rows(const TableRow& table) {
  std::string out = "SELECT ";
  for (const ColumnRow& column : table.columns) {
    out += fmt::format("CAST(NULL AS {}) AS {}, ", sql_type(column.type), column.name);
  }
  for (const char* name : {"job", "run", "attempt", "part"}) {
    out += fmt::format("CAST(NULL AS STRING) AS {}{}", name, name[0] == 'p' ? "" : ", ");
  }
  return out + " WHERE false";
}

std::string view(const fs::path& folder, const TableRow& table, SqlEngine engine) {
  const fs::path place = folder / table.name;
  const char* const create =
      engine == SqlEngine::spark ? "CREATE OR REPLACE TEMPORARY VIEW" : "CREATE OR REPLACE VIEW";
  if (!has_files(place)) {
    return fmt::format("{} {} AS {};\n", create, table.name, empty_rows(table));
  }
  if (engine == SqlEngine::spark) {
    return fmt::format("{} {} USING parquet OPTIONS (path {}, mergeSchema 'true');\n", create,
                       table.name, quoted(place.string(), engine));
  }
  return fmt::format(
      "{} {} AS SELECT * FROM read_parquet({}, hive_partitioning = true, "
      "hive_types_autocast = false, union_by_name = true);\n",
      create, table.name, quoted((place / "*/*/*/*/*.parquet").string(), engine));
}

}  // namespace

std::string_view Query::title() const {
  std::string_view line = text.substr(0, text.find('\n'));
  return line.substr(line.find_first_not_of("- "));
}

std::span<const Query> queries() {
#define QUERY(name) \
  {#name, {gpuprof_sql_##name, static_cast<size_t>(gpuprof_sql_##name##_end - gpuprof_sql_##name)}},
  static const Query kQueries[] = {
#include "tools/sql/queries.def"
  };
#undef QUERY
  return kQueries;
}

bool holds_tables(const std::string& folder) {
  return has_files(fs::path(folder) / table_of<Processes>().name);
}

std::string view_statements(const std::string& folder, SqlEngine engine) {
  std::string out;
  if (engine == SqlEngine::spark) {  // jobs are texts, also those of digits
    out += "SET spark.sql.sources.partitionColumnTypeInference.enabled = false;\n";
  }
#define GPUPROF_VIEW(name, Enum, columns) out += view(folder, table_of<Enum>(), engine);
  GPUPROF_TABLES(GPUPROF_VIEW)
#undef GPUPROF_VIEW
  return out;
}

}  // namespace gpuprof
