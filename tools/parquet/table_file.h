// SPDX-License-Identifier: Apache-2.0
// One Parquet file: rows of one table.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "formats/io/file_bytes.h"
#include "tools/parquet/batch.h"

namespace parquet::arrow {
class FileWriter;
}

namespace gpuprof::parquet_export {

// Complete or absent, as OutputFile. Throws Failure. One thread at a time.
class TableFile {
 public:
  TableFile(const TableRow& table, const std::string& path);
  ~TableFile();
  TableFile(const TableFile&) = delete;
  TableFile& operator=(const TableFile&) = delete;

  // Adds a row: `fill` puts each column once.
  template <typename Enum, typename Fill>
  void add(const Fill& fill) {
    Row<Enum> row(columns_);
    fill(row);
    ++rows_;
    if (++in_batch_ == kBatchRows) write_batch();
  }
  // Writes what is left and puts the file in place.
  void close();
  uint64_t rows() const { return rows_; }
  uint64_t bytes() const { return file_.bytes_written(); }

 private:
  void write_batch();

  const std::string path_;
  OutputFile file_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::vector<ColumnBuffer> columns_;
  size_t in_batch_ = 0;
  uint64_t rows_ = 0;
};

}  // namespace gpuprof::parquet_export
