// SPDX-License-Identifier: Apache-2.0
// Rows of one table on their way into a file, as columns in memory. One thread at a time.
#pragma once

#include <arrow/api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "formats/trace/trace.h"
#include "tools/parquet/schema.h"

namespace gpuprof::parquet_export {

// Rows of a row group: as many as readers share out among their threads.
inline constexpr size_t kBatchRows = 1 << 17;

// One column of up to kBatchRows rows. Each put adds a row.
class ColumnBuffer {
 public:
  explicit ColumnBuffer(const ColumnRow& row);

  void put(int64_t number) {
    if (wide_) {
      wide_[size_] = number;
    } else if (narrow_) {
      narrow_[size_] = static_cast<int32_t>(number);
    } else {
      bytes_[size_] = number != 0;
    }
    ++size_;
  }
  void put_real(double number) { reals_[size_++] = number; }
  void put_text(std::string_view text) { narrow_[size_++] = code_of(text); }
  // One of a few texts that stay where they are.
  void put_word(std::string_view word) {
    for (const auto& [place, code] : words_) {
      if (place == word.data()) {
        narrow_[size_++] = code;
        return;
      }
    }
    words_.emplace_back(word.data(), code_of(word));
    narrow_[size_++] = words_.back().second;
  }
  // A text of the trace's, which is looked up once a batch.
  void put_text(const StringPool& strings, StringIndex index);
  void put_null() {
    if (!nulls_) has_.assign(kBatchRows, 1);
    ++nulls_;
    if (narrow_) narrow_[size_] = 0;  // a code of another batch may be none of this one
    has_[size_++] = 0;
  }
  size_t size() const { return size_; }

  // The rows as an array that looks into this buffer: valid until clear(). Text is a dictionary.
  std::shared_ptr<arrow::Array> array();
  void clear();

 private:
  int32_t code_of(std::string_view text);
  std::shared_ptr<arrow::Buffer> validity();

  const ColumnType type_;
  size_t size_ = 0, nulls_ = 0;
  std::unique_ptr<int64_t[]> wide_;
  std::unique_ptr<int32_t[]> narrow_;  // text: codes
  std::unique_ptr<double[]> reals_;
  std::vector<uint8_t> bytes_, has_, bits_, has_bits_;
  std::unordered_map<std::string, int32_t> codes_;
  std::vector<const std::string*> texts_;  // by code
  std::vector<std::pair<const char*, int32_t>> words_;
  std::vector<int32_t> of_strings_;  // code + 1 by StringIndex; 0: not in this batch
  std::vector<uint32_t> used_strings_;
};

// The type of a column in Arrow's terms.
std::shared_ptr<arrow::DataType> arrow_type(ColumnType type);

// Rows of the table whose columns `Enum` names. A row is one put of each column, in any order.
template <typename Enum>
class Row {
 public:
  explicit Row(std::vector<ColumnBuffer>& columns) : columns_(columns) {}

  template <typename Number>
  void put(Enum column, Number number) {
    at(column).put(static_cast<int64_t>(number));
  }
  // Null if `known` is false.
  template <typename Number>
  void put_if(bool known, Enum column, Number number) {
    known ? at(column).put(static_cast<int64_t>(number)) : at(column).put_null();
  }
  void real(Enum column, double number) { at(column).put_real(number); }
  void real_if(bool known, Enum column, double number) {
    known ? at(column).put_real(number) : at(column).put_null();
  }
  // Null if it is empty.
  void text(Enum column, std::string_view text) {
    text.empty() ? at(column).put_null() : at(column).put_text(text);
  }
  void text(Enum column, const StringPool& strings, StringIndex index) {
    index == StringIndex::empty ? at(column).put_null() : at(column).put_text(strings, index);
  }
  void word(Enum column, std::string_view word) { at(column).put_word(word); }
  void null(Enum column) { at(column).put_null(); }

 private:
  ColumnBuffer& at(Enum column) { return columns_[static_cast<size_t>(column)]; }
  std::vector<ColumnBuffer>& columns_;
};

}  // namespace gpuprof::parquet_export
