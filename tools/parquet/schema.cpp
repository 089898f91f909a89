// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/schema.h"

namespace gpuprof::parquet_export {

#define GPUPROF_COLUMN(name, type, unit, source) {#name, ColumnType::type, unit, source},
#define GPUPROF_TABLE(name, Enum, columns)                             \
  template <>                                                          \
  const TableRow& table_of<Enum>() {                                   \
    static constexpr ColumnRow kColumns[] = {columns(GPUPROF_COLUMN)}; \
    static constexpr TableRow kTable = {#name, kColumns};              \
    return kTable;                                                     \
  }
GPUPROF_TABLES(GPUPROF_TABLE)
#undef GPUPROF_TABLE
#undef GPUPROF_COLUMN

}  // namespace gpuprof::parquet_export
