// SPDX-License-Identifier: Apache-2.0
// What a signal must not leave behind: files and directories of an output that is not finished.
#pragma once

#include <string>

namespace gpuprof {

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

// Lists `path`, which a commit is about to make, until all of the output is there.
void list_until_all_is_there(const std::string& path);

// An output of several files is whole or absent: while this is alive, what
// list_until_all_is_there() is told stays listed. One at a time.
class WholeOutput {
 public:
  WholeOutput();
  ~WholeOutput();
  WholeOutput(const WholeOutput&) = delete;
  WholeOutput& operator=(const WholeOutput&) = delete;
  // All is there: from now on the signals are ignored, since the command has done its work.
  void keep();
};

}  // namespace gpuprof
