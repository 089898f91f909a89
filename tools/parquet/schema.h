// SPDX-License-Identifier: Apache-2.0
// The tables of schema.def as types: an enum class of each one's columns, which number them from 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tools/parquet/schema.def"

namespace gpuprof::parquet_export {

// Written into each file as gpuprof.schema_version. Readers may read files of several versions
// together: a later one only has more columns at the end.
inline constexpr int kSchemaVersion = 1;

enum class ColumnType : uint8_t { id, time, int64, int32, serial, real, flag, text };

struct ColumnRow {
  const char* name;
  ColumnType type;
  const char* unit;    // empty: a number of its own, or none
  const char* source;  // what it is, or what it is taken from
};

struct TableRow {
  const char* name;
  std::span<const ColumnRow> columns;
};

#define GPUPROF_ENUMERATOR(name, type, unit, source) name,
#define GPUPROF_ENUM(name, Enum, columns) enum class Enum : uint8_t { columns(GPUPROF_ENUMERATOR) };
GPUPROF_TABLES(GPUPROF_ENUM)
#undef GPUPROF_ENUM
#undef GPUPROF_ENUMERATOR

// The table whose columns an enum names.
template <typename Column>
const TableRow& table_of();

}  // namespace gpuprof::parquet_export
