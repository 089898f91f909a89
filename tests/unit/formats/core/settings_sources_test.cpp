// SPDX-License-Identifier: Apache-2.0
// Where settings come from: files, the environment, flags; what wins, and unknown names.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "formats/core/settings.h"
#include "tests/unit/support/other_user.h"
#include "tests/unit/support/settings_of.h"

namespace gpuprof::test {
namespace {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/gpuprof_settings_XXXXXX";
    close(mkstemp(name));
    path_ = name;
    std::ofstream(path_) << content;
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Names = std::vector<std::pair<std::string, std::string>>;
void note_unknown(const char* name, const char* nearest, void* context) {
  static_cast<Names*>(context)->push_back({name, nearest});
}

TEST(Settings, unknown_names_get_the_nearest) {
  Names names;
  Settings settings;
  SettingError error;
  const Environment environment({"GPUPROF_SCHEDUL=active=1", "GPUPROF_BUFFERS_MB=3", "PATH=/bin",
                                 "GPUPROF_TEST_ANYTHING=1", "GPUPROF_STEPS", "GPUPROF_LOG=info"});
  ASSERT_TRUE(settings.load_environment(environment.get(), error, note_unknown, &names));
  const Names expected = {{"GPUPROF_SCHEDUL", "GPUPROF_SCHEDULE"},
                          {"GPUPROF_BUFFERS_MB", "GPUPROF_BUFFER_MB"},
                          {"GPUPROF_STEPS", "GPUPROF_STEP"}};
  EXPECT_EQ(names, expected);
  EXPECT_STREQ(settings.text(Setting::log), "info");
}

TEST(Settings, set_refuses_an_unknown_name) {
  Settings settings;
  SettingError error;
  EXPECT_FALSE(settings.set("GPUPROF_MOD", "on", SettingSource::environment, error));
  EXPECT_STREQ(error.text, "GPUPROF_MOD is not a setting; did you mean GPUPROF_MODE");
}

TEST(Settings, later_sources_win_and_are_named) {
  const TemporaryFile file(
      "# our cluster\n\n  GPUPROF_LOG = info\nGPUPROF_BUFFER_MB=32 # small\n"
      "GPUPROF_RUN='a # b'\nGPUPROF_OUTPUT=\"/data/my runs\"  # quoted\n"
      "GPUPROF_STEP=nvtx:step#1\nGPUPROF_CUPTI=");
  const Environment environment({"GPUPROF_CONFIG=" + file.path(), "GPUPROF_BUFFER_MB=16"});
  Names names;
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_all(environment.get(), error, note_unknown, &names)) << error.text;
  Config config;
  ASSERT_TRUE(settings.parse(0, config, error)) << error.text;
  EXPECT_EQ(config.log, LogLevel::info);
  EXPECT_EQ(config.buffer_mb, 16u);
  EXPECT_STREQ(config.run, "a # b");
  EXPECT_STREQ(config.output, "/data/my runs");
  EXPECT_STREQ(config.step.name, "step#1");
  EXPECT_STREQ(settings.source_name(Setting::log), file.path().c_str());
  EXPECT_STREQ(settings.source_name(Setting::buffer_mb), "environment");
  EXPECT_STREQ(settings.source_name(Setting::mode), "default");
  EXPECT_TRUE(names.empty());
}

TEST(Settings, a_config_file_wins_over_the_system_file) {
  const TemporaryFile system("GPUPROF_LOG=debug\nGPUPROF_MODE=off\n");
  const TemporaryFile config_file("GPUPROF_LOG=info\n");
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_file(system.path().c_str(), SettingSource::system_file, error));
  ASSERT_TRUE(settings.load_file(config_file.path().c_str(), SettingSource::config_file, error));
  EXPECT_STREQ(settings.text(Setting::log), "info");
  EXPECT_STREQ(settings.text(Setting::mode), "off");
  EXPECT_STREQ(settings.source_name(Setting::mode), "/etc/gpuprof.conf");
}

TEST(Settings, a_system_file_that_others_may_write_is_not_accepted) {
  const TemporaryFile file("GPUPROF_ON_TRACE_READY=/tmp/theirs {}\n");
  SettingError error;
  const auto load = [&] {
    Settings settings;
    const bool good = settings.load_file(file.path().c_str(), SettingSource::system_file, error);
    EXPECT_EQ(good, std::string(settings.text(Setting::on_trace_ready)) != "none");
    return good;
  };
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  EXPECT_TRUE(load());
  for (const mode_t mode : {0666, 0664, 0646}) {
    ASSERT_EQ(chmod(file.path().c_str(), mode), 0);
    EXPECT_FALSE(load());
    EXPECT_NE(std::string(error.text)
                  .find(": must belong to root or to this user and be writable by its owner alone"),
              std::string::npos)
        << error.text;
  }
  if (!can_give_files_to_somebody()) GTEST_SKIP() << "needs root, and a second user";
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  ASSERT_EQ(chown(file.path().c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(load());
}

TEST(Settings, lines_of_a_file_that_are_refused) {
  const std::pair<std::string, std::string> cases[] = {
      {"GPUPROF_LOG=info\nnonsense\n",
       " line 2: \"nonsense\" must be NAME=VALUE with a GPUPROF_ name, or a # comment"},
      {"LOG=info", " line 1: \"LOG=info\" must be NAME=VALUE with a GPUPROF_ name, or a # comment"},
      {"GPUPROF_RUN=\"abc",
       " line 1: \"GPUPROF_RUN=\"abc\" has a quote that is not closed, or text after it"},
      {"GPUPROF_RUN=\"a\" b",
       " line 1: \"GPUPROF_RUN=\"a\" b\" has a quote that is not closed, or text after it"},
      {"\n\nGPUPROF_CONFIG=/x\n", " line 3: GPUPROF_CONFIG can be set only in the environment"},
      {std::string(3000, 'x'), " line 1: must have at most 2048 characters"},
  };
  for (const auto& [content, message] : cases) {
    const TemporaryFile file(content);
    Settings settings;
    SettingError error;
    EXPECT_FALSE(settings.load_file(file.path().c_str(), SettingSource::config_file, error));
    EXPECT_EQ(error.text, "settings file \"" + file.path() + "\"" + message);
  }
}

TEST(Settings, a_bad_value_in_a_file_names_the_file) {
  const TemporaryFile file("GPUPROF_LOG=loud\nGPUPROF_LOUD=1");
  Names names;
  Settings settings;
  SettingError error;
  ASSERT_TRUE(settings.load_file(file.path().c_str(), SettingSource::config_file, error,
                                 note_unknown, &names));
  EXPECT_EQ(names, (Names{{"GPUPROF_LOUD", "GPUPROF_LOG"}}));
  Config config;
  EXPECT_FALSE(settings.parse(0, config, error));
  EXPECT_EQ(error.text,
            "GPUPROF_LOG=\"loud\" (in " + file.path() + "): must be error, warn, info or debug");
}

TEST(Settings, files_that_cannot_be_read) {
  Settings settings;
  SettingError error;
  EXPECT_TRUE(settings.load_file("/nonexistent/x", SettingSource::system_file, error));
  EXPECT_FALSE(settings.load_file("/nonexistent/x", SettingSource::config_file, error));
  EXPECT_STREQ(error.text, "settings file \"/nonexistent/x\": cannot be opened: no such file");
  EXPECT_FALSE(settings.load_file("/tmp", SettingSource::config_file, error));
  EXPECT_STREQ(error.text, "settings file \"/tmp\": cannot be read: error 21");
  char name[] = "/tmp/gpuprof_fifo_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string pipe = std::string(name) + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(settings.load_file(pipe.c_str(), SettingSource::config_file, error));
  EXPECT_EQ(error.text, "settings file \"" + pipe + "\": is not a regular file");
  unlink(pipe.c_str());
  rmdir(name);
}

}  // namespace
}  // namespace gpuprof::test
