// SPDX-License-Identifier: Apache-2.0
// What a signal must not leave behind: files and directories of an output that is not finished.
#pragma once

#include <string>

namespace gpuprof {

// From now on `handler` takes SIGINT, SIGTERM and SIGHUP, unless they are ignored.
void on_ending_signals(void (*handler)(int signal));

// From now on SIGINT, SIGTERM and SIGHUP, unless they are ignored, remove all that is listed below
// and end the process with 128 + signal. Call it once, before there are threads.
void remove_unfinished_on_signals();

// A path that is removed if a signal ends the process now: a file, or a directory if it is empty.
// What was listed later goes first. Any thread.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path);
  // It is no longer there, or it stays.
  ~Unfinished() { forget(); }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void forget();

  struct Entry;

 private:
  Entry* entry_;
};

// Lists `path`, a directory that was just made, until all of the output is there.
void list_until_all_is_there(const std::string& path);

// Renames a finished file into place: now, or with all others where a WholeOutput is alive.
// False, with errno, where it cannot. Any thread.
bool put_in_place(const std::string& finished, const std::string& target);

// An output of several files is whole or absent, and what it replaces stays until then.
// While this is alive, files wait for keep() under their temporary names. One at a time.
class WholeOutput {
 public:
  WholeOutput();
  // Without keep(), removes all that was made.
  ~WholeOutput();
  WholeOutput(const WholeOutput&) = delete;
  WholeOutput& operator=(const WholeOutput&) = delete;
  // Puts all files in place. From now on the signals are ignored: the command has done its work.
  // False, with the reason, where a file cannot be renamed; those before it are in place.
  bool keep(std::string& error);
};

}  // namespace gpuprof
