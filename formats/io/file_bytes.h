// SPDX-License-Identifier: Apache-2.0
// Reading input files and writing output files that are complete or absent.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/unfinished.h"

struct stat;  // <sys/stat.h>

namespace gpuprof {

// Why a file's contents are not read: it is no regular file, or next to nothing of its length is
// stored. A sparse file's holes cost memory and time, and no disk. Null: they are.
const char* why_not_read(const struct stat& info);

// The whole of a regular file. On failure returns false and sets `reason`
// (without the file's name).
bool read_file(const std::string& path, std::string& bytes, std::string& reason);

enum class Compression { none, gzip };

// What happens to a link that lies where an output is to go. A name that the user gave may be one:
// it is followed. A name that the command chose lies in a directory that may be another user's:
// the link is replaced, and what is neither file nor link is refused.
enum class Links { followed, replaced };

// Appends `bytes` to `out` as members of a gzip file, of a megabyte each.
// Thread-safe.
void gzip_member(std::string_view bytes, std::string& out);

// Writes to a file beside `path` (mode 0666 less the umask's bits). It has no name until
// commit() puts it in place; a hidden one if the file system knows no such files. Without a
// successful commit nothing is left behind, nor by a signal (unfinished.h). Links are
// followed or replaced; if followed, what is no regular file (a pipe, a device), or is open already
// (/dev/stdout, /dev/fd/N), is written where it is. Errors are kept until commit(). gzip: a member
// for each megabyte (RFC 1952, section 2.2), which every reader of the format takes. Not
// thread-safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path, Compression compression = Compression::none,
                      Links links = Links::followed);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  bool ok() const { return error_.empty(); }
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Bytes of gzip_member(), for a file that is compressed.
  void write_members(std::string_view members);
  // Of a file that is not compressed: where the next byte will be, and writing over earlier ones.
  uint64_t place() const { return written_ + buffer_.size(); }
  void overwrite(uint64_t place, const void* data, size_t size);
  Compression compression() const { return compression_; }
  uint64_t bytes_written() const { return written_; }  // to disk
  // False when anything failed; error() then says what, naming the file.
  bool commit();
  const std::string& error() const { return error_; }

 private:
  void flush();
  void put(const char* data, size_t size);
  void fail(const char* what);
  bool write_where_it_is();
  void open_beside_target();
  bool name_temporary();

  const Compression compression_;
  std::string path_, target_, error_;
  std::string temporary_;  // renamed to `target_` when it is whole; empty: written where it is
  std::optional<Unfinished> listed_;
  bool nameless_ = false;  // `temporary_` is not there yet
  std::string buffer_, members_;
  uint64_t written_ = 0;
  int file_ = -1;
};

}  // namespace gpuprof
