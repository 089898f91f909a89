// SPDX-License-Identifier: Apache-2.0
// Sums of the time that samples stand for, by line of code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof::analysis {

// A line of the program's own code; of a stack without any, its innermost frame's. Of native code
// without information for debuggers: a function, and for its file the library's name.
struct CodeLine {
  std::string file, function;
  uint32_t line = 0;   // 0: not known
  std::string within;  // the function called that at least half of its time was in; "": none
  // Of its time, in what `within` called in turn, or the line itself: 10 % or more, most first.
  struct Part {
    std::string function;
    double pct;
  };
  std::vector<Part> parts;
  std::string place() const;  // "train.py:41 main"
  // "in Trainer.training_step (Trainer.compute_loss 52 %, Accelerator.backward 41 %)"; "": not
  // known
  std::string calls() const;
};

// Times in the functions that a line called.
class WithinTimes {
 public:
  // Of one sample, callees before their callers; one that calls itself counts once.
  void add(std::span<const std::string> functions, double us);
  // The innermost one that at least half of `total` was in; "": none.
  std::string mostly(double total) const;
  // What it called, or where it is "" the line itself.
  std::vector<CodeLine::Part> called_by(const std::string& function, double total) const;

 private:
  std::vector<std::pair<std::string, double>> times_;
  std::map<std::pair<std::string, std::string>, double> calls_;  // by caller ("": the line), callee
};

// `Line` is a CodeLine with a time of its own in microseconds, `kTime`.
template <typename Line, double Line::*kTime>
class LineTimes {
 public:
  // Of one sample: the line that its time counts for, and the functions that this one called,
  // innermost first.
  Line& add(const CodeLine& own, std::span<const std::string> called, double us) {
    Sum& sum = sums_[{own.file, own.line ? std::to_string(own.line) : own.function}];
    sum.line.file = own.file;
    sum.line.line = own.line;
    sum.line.function = own.function;
    sum.line.*kTime += us;
    sum.within.add(called, us);
    return sum.line;
  }

  // Most time first.
  std::vector<Line> take() {
    std::vector<Line> out;
    for (auto& [place, sum] : sums_) {
      sum.line.within = sum.within.mostly(sum.line.*kTime);
      sum.line.parts = sum.within.called_by(sum.line.within, sum.line.*kTime);
      out.push_back(std::move(sum.line));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Line& a, const Line& b) { return a.*kTime > b.*kTime; });
    return out;
  }

 private:
  struct Sum {
    Line line;
    WithinTimes within;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums_;  // by file and line, or function
};

}  // namespace gpuprof::analysis
