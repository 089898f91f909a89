// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/table_file.h"

#include <arrow/io/interfaces.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "tools/console.h"

namespace gpuprof::parquet_export {
namespace {

constexpr int kZstdLevel = 1;

// Arrow's way into a file of ours.
class FileStream : public arrow::io::OutputStream {
 public:
  explicit FileStream(OutputFile& file) : file_(file) {}
  arrow::Status Write(const void* data, int64_t size) override {
    file_.write(data, static_cast<size_t>(size));
    return file_.ok() ? arrow::Status::OK() : arrow::Status::IOError(file_.error());
  }
  arrow::Result<int64_t> Tell() const override { return static_cast<int64_t>(file_.place()); }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  OutputFile& file_;
  bool closed_ = false;
};

void check(const arrow::Status& status, const std::string& path) {
  if (!status.ok()) {
    throw Failure(fmt::format("{}: cannot be written: {}", path, status.message()));
  }
}

std::shared_ptr<arrow::Schema> arrow_schema(const TableRow& table) {
  arrow::FieldVector fields;
  for (const ColumnRow& column : table.columns) {
    const bool may_be_null = column.type != ColumnType::id;
    fields.push_back(arrow::field(column.name, arrow_type(column.type), may_be_null));
  }
  return arrow::schema(std::move(fields));
}

std::shared_ptr<parquet::WriterProperties> properties(const TableRow& table) {
  parquet::WriterProperties::Builder out;
  out.compression(parquet::Compression::ZSTD);
  out.compression_level(kZstdLevel);
  out.max_row_group_length(kBatchRows);
  out.created_by("gpuprof");
  for (const ColumnRow& column : table.columns) {
    if (column.type != ColumnType::time && column.type != ColumnType::serial) continue;
    out.disable_dictionary(column.name);
    out.encoding(column.name, parquet::Encoding::DELTA_BINARY_PACKED);
  }
  return out.build();
}

}  // namespace

TableFile::TableFile(const TableRow& table, const std::string& path)
    : path_(path), file_(path, Compression::none, Links::replaced) {
  columns_.reserve(table.columns.size());
  for (const ColumnRow& column : table.columns) columns_.emplace_back(column);
  auto writer =
      parquet::arrow::FileWriter::Open(*arrow_schema(table), arrow::default_memory_pool(),
                                       std::make_shared<FileStream>(file_), properties(table));
  check(writer.status(), path);
  writer_ = std::move(writer).ValueUnsafe();
  const auto metadata = arrow::key_value_metadata({"gpuprof.schema_version", "gpuprof.table"},
                                                  {std::to_string(kSchemaVersion), table.name});
  check(writer_->AddKeyValueMetadata(metadata), path_);
}

TableFile::~TableFile() = default;

void TableFile::write_batch() {
  check(writer_->NewRowGroup(), path_);
  for (ColumnBuffer& column : columns_) {
    if (column.size() != in_batch_) throw std::logic_error("a row lacks a column");
    check(writer_->WriteColumnChunk(*column.array()), path_);
    column.clear();
  }
  in_batch_ = 0;
}

void TableFile::close() {
  if (in_batch_ > 0) write_batch();
  check(writer_->Close(), path_);
  if (!file_.commit()) throw Failure(file_.error());
}

}  // namespace gpuprof::parquet_export
