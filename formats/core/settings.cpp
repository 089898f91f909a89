// SPDX-License-Identifier: Apache-2.0
#include "formats/core/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "formats/core/setting_values.h"
#include "formats/core/text.h"

namespace gpuprof {

const SettingRow kSettingRows[kSettingCount] = {
#define GPUPROF_SETTING(id, name, default_value, allowed, help, read) \
  {Setting::id, name, default_value, allowed, help},
#include "formats/core/settings.def"
};

namespace {

constexpr std::string_view kPrefix = "GPUPROF_";
constexpr std::string_view kTestPrefix = "GPUPROF_TEST_";
constexpr size_t kLineBytes = 2048;

size_t index_of(Setting id) { return static_cast<size_t>(id); }

const SettingRow* find_row(std::string_view name) {
  for (const SettingRow& row : kSettingRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

TextBuilder describe(SettingError& error) { return TextBuilder(error.text, sizeof(error.text)); }

// `GPUPROF_X="value": reason`, with the file's name when the value came from one.
bool refuse_value(const char* name, std::string_view value, const char* file, const Reason& reason,
                  SettingError& error) {
  TextBuilder out = describe(error);
  out.add(name).add('=').add_quoted(value);
  if (file != nullptr) out.add(" (in ").add(file).add(")");
  out.add(": ").add(reason.text);
  return false;
}

bool refuse_file(const char* path, std::string_view problem, int code, SettingError& error) {
  TextBuilder out = describe(error);
  out.add("settings file ").add_quoted(path, 200).add(": ").add(problem);
  if (code == ENOENT) out.add(": no such file");
  if (code == EACCES) out.add(": permission denied");
  if (code != 0 && code != ENOENT && code != EACCES) {
    out.add(": error ").add_whole(static_cast<uint64_t>(code));
  }
  return false;
}

// Null: no known name is near.
const char* near_setting(std::string_view name) {
  constexpr size_t kPrefix = std::string_view("GPUPROF_").size();
  const char* const nearest = nearest_setting(name);
  const size_t own = name.size() > kPrefix ? name.size() - kPrefix : 0;
  return edit_distance(name, nearest) < 2 + own / 4 ? nearest : nullptr;
}

void report_unknown(std::string_view name, UnknownSetting unknown, void* context) {
  if (unknown == nullptr) return;
  char text[128];
  copy_text(name, text, sizeof(text));
  unknown(text, near_setting(name), context);
}

// Takes quotes or a trailing comment off the value of a line. False when a quote is left open or
// something follows the closing one.
bool unquote(std::string_view& value) {
  const char quote = value.empty() ? '\0' : value[0];
  if (quote != '"' && quote != '\'') {
    for (size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '#' && (i == 0 || is_blank(value[i - 1]))) {
        value = trim(slice(value, 0, i));
        break;
      }
    }
    return true;
  }
  std::string_view rest = slice(value, 1);
  const size_t length = rest.size();
  const std::string_view inside = take_until(rest, quote);
  const bool closed = inside.size() < length;
  rest = trim(rest);
  value = inside;
  return closed && (rest.empty() || rest[0] == '#');
}

// Reads a file line by line through a fixed buffer.
class LineReader {
 public:
  explicit LineReader(int file) : file_(file) {}
  enum class Result { line, end, too_long, failed };

  Result next(std::string_view& line) {
    size_t length = 0;
    bool any = false;
    for (;;) {
      if (position_ == filled_ && !fill()) break;
      any = true;
      const char c = buffer_[position_++];
      if (c == '\n') break;
      if (length == kLineBytes) return Result::too_long;
      line_[length++] = c;
    }
    if (error_ != 0) return Result::failed;
    line = {line_, length};
    return any ? Result::line : Result::end;
  }
  int error() const { return error_; }

 private:
  bool fill() {
    ssize_t count;
    do {
      count = read(file_, buffer_, sizeof(buffer_));
    } while (count < 0 && errno == EINTR);
    if (count < 0) error_ = errno;
    position_ = 0;
    filled_ = count > 0 ? static_cast<size_t>(count) : 0;
    return filled_ > 0;
  }

  int file_;
  int error_ = 0;
  size_t position_ = 0, filled_ = 0;
  char buffer_[1024];
  char line_[kLineBytes];
};

// It names programs to run and directories to write to, for all users. By system call: the libc
// symbol is newer than the oldest glibc we run on.
bool is_of_the_system(int file) {
  struct stat info {};
  return syscall(SYS_fstat, file, &info) == 0 && (info.st_mode & 0022) == 0 &&
         (info.st_uid == 0 || info.st_uid == geteuid());
}

class FileCloser {
 public:
  explicit FileCloser(int file) : file_(file) {}
  ~FileCloser() { close(file_); }
  FileCloser(const FileCloser&) = delete;
  FileCloser& operator=(const FileCloser&) = delete;

 private:
  int file_;
};

}  // namespace

const char* nearest_setting(std::string_view name) {
  const SettingRow* nearest = &kSettingRows[0];
  size_t best = SIZE_MAX;
  for (const SettingRow& row : kSettingRows) {
    const size_t distance = edit_distance(name, row.name);
    if (distance >= best) continue;
    best = distance;
    nearest = &row;
  }
  return nearest->name;
}

Settings::Settings() : config_path_{} {
  for (const SettingRow& row : kSettingRows) {
    Value& value = values_[index_of(row.id)];
    copy_text(row.default_value, value.text, sizeof(value.text));
    value.source = SettingSource::defaults;
  }
}

bool Settings::set(std::string_view name, std::string_view value, SettingSource source,
                   SettingError& error) {
  const SettingRow* row = find_row(name);
  if (row == nullptr) {
    const char* const near = near_setting(name);
    describe(error)
        .add(slice(name, 0, 80))
        .add(" is not a setting; ")
        .add(near ? "did you mean " : "gpuprof config lists them")
        .add(near ? near : "");
    return false;
  }
  if (value.empty()) value = row->default_value;
  Value& slot = values_[index_of(row->id)];
  if (value.size() >= sizeof(slot.text)) {
    describe(error).add(row->name).add('=').add_quoted(value).add(
        ": must have fewer than 1024 characters");
    return false;
  }
  copy_text(value, slot.text, sizeof(slot.text));
  slot.source = source;
  return true;
}

bool Settings::load_file(const char* path, SettingSource source, SettingError& error,
                         UnknownSetting unknown, void* context) {
  if (source == SettingSource::config_file &&
      !copy_text(path, config_path_, sizeof(config_path_))) {
    return refuse_file(path, "the path is too long", 0, error);
  }
  // Without O_NONBLOCK a named pipe would hang the program here.
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    if (source == SettingSource::system_file && errno != EACCES) return true;
    return refuse_file(path, "cannot be opened", errno, error);
  }
  FileCloser closer(file);
  if (lseek(file, 0, SEEK_CUR) < 0) {  // fstat is a symbol of glibc 2.33
    return refuse_file(path, "is not a regular file", 0, error);
  }
  if (source == SettingSource::system_file && !is_of_the_system(file)) {
    return refuse_file(path,
                       "must belong to root or to this user and be writable by its owner alone "
                       "(chmod go-w)",
                       0, error);
  }
  LineReader reader(file);
  for (uint64_t number = 1;; ++number) {
    std::string_view line;
    const LineReader::Result result = reader.next(line);
    if (result == LineReader::Result::end) return true;
    if (result == LineReader::Result::failed) {
      return refuse_file(path, "cannot be read", reader.error(), error);
    }
    Reason reason;
    reason.text[0] = '\0';
    if (result == LineReader::Result::too_long) {
      copy_text("must have at most 2048 characters", reason.text, sizeof(reason.text));
    } else if (load_line(line, source, reason.text, sizeof(reason.text), unknown, context)) {
      continue;
    }
    describe(error)
        .add("settings file ")
        .add_quoted(path, 200)
        .add(" line ")
        .add_whole(number)
        .add(": ")
        .add(reason.text);
    return false;
  }
}

bool Settings::load_line(std::string_view line, SettingSource source, char* reason, size_t size,
                         UnknownSetting unknown, void* context) {
  line = trim(line);
  if (line.empty() || line[0] == '#') return true;
  std::string_view value = line;
  const std::string_view name = trim(take_until(value, '='));
  TextBuilder out(reason, size);
  if (name.size() == line.size() || !starts_with(name, kPrefix)) {
    out.add_quoted(line, 60).add(" must be NAME=VALUE with a GPUPROF_ name, or a # comment");
    return false;
  }
  value = trim(value);
  if (!unquote(value)) {
    out.add_quoted(line, 60).add(" has a quote that is not closed, or text after it");
    return false;
  }
  const SettingRow* row = find_row(name);
  if (row == nullptr) {
    report_unknown(name, unknown, context);
    return true;
  }
  if (row->id == Setting::config) {
    out.add("GPUPROF_CONFIG can be set only in the environment");
    return false;
  }
  SettingError problem;
  if (set(name, value, source, problem)) return true;
  out.add(problem.text);
  return false;
}

bool Settings::load_environment(char* const* environment, SettingError& error,
                                UnknownSetting unknown, void* context) {
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (strncmp(*entry, kPrefix.data(), kPrefix.size()) != 0) continue;
    std::string_view value = *entry;
    const std::string_view name = take_until(value, '=');
    if (starts_with(name, kTestPrefix)) continue;
    if (find_row(name) == nullptr) {
      report_unknown(name, unknown, context);
    } else if (!set(name, value, SettingSource::environment, error)) {
      return false;
    }
  }
  return true;
}

bool Settings::load_all(char* const* environment, SettingError& error, UnknownSetting unknown,
                        void* context) {
  if (!load_file(kSystemSettingsFile, SettingSource::system_file, error, unknown, context)) {
    return false;
  }
  const char* path = find_in_environment(environment, "GPUPROF_CONFIG");
  if (path != nullptr && *path != '\0' &&
      !load_file(path, SettingSource::config_file, error, unknown, context)) {
    return false;
  }
  return load_environment(environment, error, unknown, context);
}

const char* Settings::text(Setting id) const { return values_[index_of(id)].text; }

SettingSource Settings::source(Setting id) const { return values_[index_of(id)].source; }

const char* Settings::source_name(Setting id) const {
  switch (source(id)) {
    case SettingSource::defaults: return "default";
    case SettingSource::system_file: return kSystemSettingsFile;
    case SettingSource::config_file: return config_path_;
    case SettingSource::environment: return "environment";
  }
  return "";
}

bool Settings::parse_one(Setting id, int rank, Config& config, SettingError& error) const {
  const std::string_view value = text(id);
  Reason reason;
  bool good = true;
  switch (id) {
#define GPUPROF_SETTING(id, name, default_value, allowed, help, read) \
  case Setting::id:                                                   \
    good = (read);                                                    \
    break;
#include "formats/core/settings.def"
    case Setting::count: break;
  }
  if (good) return true;
  const SettingSource from = source(id);
  const bool in_file = from == SettingSource::system_file || from == SettingSource::config_file;
  return refuse_value(kSettingRows[index_of(id)].name, value, in_file ? source_name(id) : nullptr,
                      reason, error);
}

bool Settings::parse(int rank, Config& config, SettingError& error) const {
  config = Config{};
  for (const SettingRow& row : kSettingRows) {
    if (!parse_one(row.id, rank, config, error)) return false;
  }
  // The default's text has one.
  if (source(Setting::schedule) == SettingSource::defaults) config.schedule.has_repeat = false;
  if (config.mode == Mode::armed && config.schedule.all) {
    describe(error).add(
        "GPUPROF_SCHEDULE=all records the whole program, and GPUPROF_MODE=armed nothing until "
        "gpuprof trigger asks; set one of them");
    return false;
  }
  return true;
}

bool parse_schedule(std::string_view text, ScheduleSpec& spec, SettingError& error) {
  Reason reason;
  return read_schedule(text, spec, reason) ||
         refuse_value("GPUPROF_SCHEDULE", text, nullptr, reason, error);
}

bool parse_step(std::string_view text, StepSpec& spec, SettingError& error) {
  Reason reason;
  return read_step(text, spec, reason) ||
         refuse_value("GPUPROF_STEP", text, nullptr, reason, error);
}

}  // namespace gpuprof
