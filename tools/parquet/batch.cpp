// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/batch.h"

#include "formats/io/utf8.h"

namespace gpuprof::parquet_export {
namespace {

// A bit each, as Arrow has them.
std::shared_ptr<arrow::Buffer> packed(const std::vector<uint8_t>& bytes, size_t size,
                                      std::vector<uint8_t>& out) {
  out.assign((size + 7) / 8, 0);
  for (size_t i = 0; i < size; ++i) out[i / 8] |= static_cast<uint8_t>(bytes[i] << (i % 8));
  return arrow::Buffer::Wrap(out);
}

template <typename T>
std::shared_ptr<arrow::Buffer> wrapped(const std::unique_ptr<T[]>& values, size_t size) {
  return arrow::Buffer::Wrap(values.get(), size);
}

}  // namespace

std::shared_ptr<arrow::DataType> arrow_type(ColumnType type) {
  switch (type) {
    case ColumnType::id:
    case ColumnType::time:
    case ColumnType::int64: return arrow::int64();
    case ColumnType::int32:
    case ColumnType::serial: return arrow::int32();
    case ColumnType::real: return arrow::float64();
    case ColumnType::flag: return arrow::boolean();
    case ColumnType::text: return arrow::dictionary(arrow::int32(), arrow::utf8());
  }
  return nullptr;
}

ColumnBuffer::ColumnBuffer(const ColumnRow& row) : type_(row.type) {
  switch (type_) {
    case ColumnType::id:
    case ColumnType::time:
    case ColumnType::int64: wide_ = std::make_unique<int64_t[]>(kBatchRows); break;
    case ColumnType::int32:
    case ColumnType::serial:
    case ColumnType::text: narrow_ = std::make_unique<int32_t[]>(kBatchRows); break;
    case ColumnType::real: reals_ = std::make_unique<double[]>(kBatchRows); break;
    case ColumnType::flag: bytes_.resize(kBatchRows); break;
  }
}

int32_t ColumnBuffer::code_of(std::string_view text) {
  const auto [at, fresh] =
      codes_.try_emplace(valid_utf8(text), static_cast<int32_t>(texts_.size()));
  if (fresh) texts_.push_back(&at->first);
  return at->second;
}

void ColumnBuffer::put_text(const StringPool& strings, StringIndex index) {
  if (of_strings_.size() < strings.size()) of_strings_.resize(strings.size());
  int32_t& code = of_strings_[number(index)];
  if (code == 0) {
    code = code_of(strings[index]) + 1;
    used_strings_.push_back(number(index));
  }
  narrow_[size_++] = code - 1;
}

std::shared_ptr<arrow::Buffer> ColumnBuffer::validity() {
  return nulls_ ? packed(has_, size_, has_bits_) : nullptr;
}

std::shared_ptr<arrow::Array> ColumnBuffer::array() {
  const auto length = static_cast<int64_t>(size_), nulls = static_cast<int64_t>(nulls_);
  switch (type_) {
    case ColumnType::id:
    case ColumnType::time:
    case ColumnType::int64:
      return std::make_shared<arrow::Int64Array>(length, wrapped(wide_, size_), validity(), nulls);
    case ColumnType::int32:
    case ColumnType::serial:
      return std::make_shared<arrow::Int32Array>(length, wrapped(narrow_, size_), validity(),
                                                 nulls);
    case ColumnType::real:
      return std::make_shared<arrow::DoubleArray>(length, wrapped(reals_, size_), validity(),
                                                  nulls);
    case ColumnType::flag:
      return std::make_shared<arrow::BooleanArray>(length, packed(bytes_, size_, bits_), validity(),
                                                   nulls);
    case ColumnType::text: break;
  }
  arrow::StringBuilder builder;
  for (const std::string* text : texts_) {
    if (!builder.Append(*text).ok()) throw std::bad_alloc();
  }
  const auto codes =
      std::make_shared<arrow::Int32Array>(length, wrapped(narrow_, size_), validity(), nulls);
  return std::make_shared<arrow::DictionaryArray>(arrow_type(ColumnType::text), codes,
                                                  builder.Finish().ValueOrDie());
}

void ColumnBuffer::clear() {
  size_ = nulls_ = 0;
  codes_.clear();
  texts_.clear();
  words_.clear();
  for (const uint32_t index : used_strings_) of_strings_[index] = 0;
  used_strings_.clear();
}

}  // namespace gpuprof::parquet_export
