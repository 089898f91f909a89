// SPDX-License-Identifier: Apache-2.0
#include "tools/parquet/places.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "formats/io/output_folder.h"
#include "tools/console.h"
#include "tools/hash.h"
#include "tools/parquet/schema.h"

namespace gpuprof::parquet_export {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHiveNull = "__HIVE_DEFAULT_PARTITION__";

std::string escaped_value(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out.empty() ? std::string(kHiveNull) : out;
}

// Values of one column of a file, row group by row group.
template <typename Reader, typename Value>
std::vector<Value> column_of(parquet::ParquetFileReader& file, int column, bool may_be_null) {
  std::vector<Value> out;
  for (int i = 0; i < file.metadata()->num_row_groups(); ++i) {
    const auto group = file.RowGroup(i);
    const int64_t rows = group->metadata()->num_rows();
    const auto reader = std::static_pointer_cast<Reader>(group->Column(column));
    std::vector<Value> values(static_cast<size_t>(rows));
    std::vector<int16_t> levels(static_cast<size_t>(rows));
    for (int64_t at = 0; at < rows;) {
      int64_t read = 0;
      const auto offset = static_cast<size_t>(at);
      at += reader->ReadBatch(rows - at, may_be_null ? levels.data() + offset : nullptr, nullptr,
                              values.data() + offset, &read);
      if (read == 0) break;
    }
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

void add_processes(const std::string& path, std::map<int64_t, int64_t>& out) {
  try {
    const auto file = parquet::ParquetFileReader::OpenFile(path, false);
    const parquet::SchemaDescriptor& schema = *file->metadata()->schema();
    const int id = schema.ColumnIndex("process"), events = schema.ColumnIndex("events");
    if (id < 0 || events < 0) throw Failure(path + ": is no file of gpuprof's table processes");
    const auto ids = column_of<parquet::Int64Reader, int64_t>(*file, id, false);
    const auto counts = column_of<parquet::Int64Reader, int64_t>(*file, events, true);
    for (size_t i = 0; i < ids.size(); ++i) out[ids[i]] = counts[i];
  } catch (const parquet::ParquetException& error) {
    throw Failure(fmt::format("{}: cannot be read: {}", path, error.what()));
  }
}

}  // namespace

std::string partition_of(const Process& process) {
  const dump::Header& h = process.header;
  return fmt::format("job={}/run={}/attempt={}", escaped_value(h.job()), escaped_value(h.run()),
                     escaped_value(h.attempt()));
}

std::string part_of(std::span<const int64_t> processes) {
  std::vector<int64_t> sorted(processes.begin(), processes.end());
  std::sort(sorted.begin(), sorted.end());
  return fmt::format("part={:016x}", fnv1a(fmt::format("{}", fmt::join(sorted, ","))));
}

std::map<int64_t, int64_t> exported_processes(const std::string& folder,
                                              const std::string& partition) {
  std::map<int64_t, int64_t> out;
  std::error_code error;
  const fs::path place = fs::path(folder) / table_of<Processes>().name / partition;
  for (fs::recursive_directory_iterator at(place, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".parquet") add_processes(at->path().string(), out);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Failure(fmt::format("{}: cannot be searched: {}", place.string(), error.message()));
  }
  return out;
}

PartitionLock::PartitionLock(const std::string& folder, const std::string& partition) {
  const std::string below = fmt::format("{}/{}", table_of<Processes>().name, partition);
  make_folders(folder, below);
  const std::string path = fmt::format("{}/{}", folder, below);
  directory_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ < 0) {
    throw Failure(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  int result = 0;
  while ((result = ::flock(directory_, LOCK_EX)) != 0 && errno == EINTR) {
  }
  if (result != 0) {
    print_warning(
        fmt::format("{}: cannot be locked: {}; two exports of this job at once would write "
                    "its rows twice",
                    path, std::strerror(errno)));
  }
}

PartitionLock::~PartitionLock() {
  if (directory_ >= 0) ::close(directory_);
}

void make_folders(const std::string& folder, const std::string& path) {
  std::string error;
  fs::path at = folder;
  bool ok = make_folder(at.string(), error);
  for (const fs::path& part : fs::path(path)) {
    at /= part;
    ok = ok && make_folder(at.string(), error);
  }
  if (!ok) throw Failure(error);
}

}  // namespace gpuprof::parquet_export
