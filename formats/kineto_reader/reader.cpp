// SPDX-License-Identifier: Apache-2.0
// The main thread reads text, cuts it into stretches and puts blocks together in their order;
// others turn stretches into blocks. Where a stretch begins is a guess (scan.h): a stretch that
// ends within an event shows that the next one's was wrong, and what is left of it is read again
// with the next.
#include "formats/kineto_reader/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "formats/io/ordered_jobs.h"
#include "formats/kineto_reader/assembler.h"
#include "formats/kineto_reader/block_parser.h"
#include "formats/kineto_reader/byte_source.h"
#include "formats/kineto_reader/text_window.h"
#include "formats/kineto_reader/workers.h"

namespace gpuprof {

using namespace kineto;

namespace {

constexpr size_t kFirstBytes = 4096;  // to see what the text begins with

class Reader {
 public:
  Reader(const std::string& path, Trace& trace, const KinetoOptions& options)
      : path_(path),
        trace_(trace),
        options_(options),
        source_(path),
        window_(source_),
        assembler_(trace, path) {
    top_.header.set_rank(-1);
    top_.header.set_local_rank(-1);
  }

  KinetoFile run() {
    if (!source_.error().empty()) {
      problem(0, source_.error());
      return {0, source_.file_bytes()};
    }
    read_document();
    report();
    if (!any_events_) return {0, source_.file_bytes()};
    const Completeness completeness = damaged_     ? Completeness::damaged
                                      : truncated_ ? Completeness::truncated
                                                   : Completeness::complete;
    return {assembler_.finish(top_, completeness), source_.file_bytes()};
  }

 private:
  void problem(uint64_t offset, std::string reason) {
    trace_.problems.push_back({path_, offset, std::move(reason)});
    trace_.problems.back().sums_up = true;
  }

  void read_document() {
    window_.grow(std::max(options_.stretch_bytes, kFirstBytes));
    if (window_.text().starts_with("\xef\xbb\xbf")) window_.consume(3);
    skip_blanks();
    if (window_.text().starts_with('[')) {
      window_.consume(1);
      any_events_ = true;
      if (read_events()) note_second_document();
      return;
    }
    if (!window_.text().starts_with('{')) return problem(0, "is not a JSON trace");
    window_.consume(1);
    while (read_members() && read_events()) {
    }
    note_second_document();
    if (!any_events_ && !damaged_) problem(0, "has no traceEvents: it is not a trace");
  }

  void skip_blanks() {
    do {
      const std::string_view text = window_.text();
      const char* const end = text.data() + text.size();
      window_.consume(static_cast<size_t>(skip_space(text.data(), end) - text.data()));
    } while (window_.text().empty() && window_.grow(options_.stretch_bytes));
  }

  // Up to the next array of events; false: there is none.
  bool read_members() {
    while (true) {
      size_t at = 0;
      const TopStop stop = read_top_level(window_.text(), at, top_);
      window_.consume(at);
      if (stop == TopStop::events) {
        any_events_ = true;
        return true;
      }
      if (stop == TopStop::end) return false;
      if (stop == TopStop::wrong) {
        damaged_ = true;
        problem(window_.offset(), "no JSON; what follows was not read");
        return false;
      }
      const size_t have = window_.text().size();
      if (have >= options_.longest_event) {
        damaged_ = true;
        problem(window_.offset(), "a value is too long; what follows was not read");
        return false;
      }
      if (!window_.grow(std::max(options_.stretch_bytes, have))) {
        cut("the file ends before its outermost object does");
        return false;
      }
    }
  }

  // Behind the first document's end, or in front of a damaged one's rest, nothing is read.
  void note_second_document() {
    if (damaged_ || truncated_) return;
    skip_blanks();
    if (window_.text().empty()) return;
    damaged_ = true;
    problem(window_.offset(),
            "something follows the end of the JSON document, and was not read: give each trace a "
            "file of its own");
  }

  void cut(const char* what) {
    truncated_ = true;
    problem(window_.offset(), what);
  }

  // Events up to the array's end; false: the file ends before that.
  bool read_events() {
    const unsigned threads = options_.threads ? options_.threads : worker_count();
    Workers workers(threads);
    // Of all stretches together: one that cuts an event is joined with the next.
    const size_t longest = std::max(options_.stretch_bytes, options_.longest_event / threads);
    std::vector<std::unique_ptr<Job>> spare;
    bool more = true;
    while (true) {
      while (more && workers.has_room()) {
        std::unique_ptr<Job> job =
            spare.empty() ? std::make_unique<Job>() : std::move(spare.back());
        if (!spare.empty()) spare.pop_back();
        more = window_.take(options_.stretch_bytes, longest, job->stretch);
        if (!more) break;
        job->options = {job->stretch.offset, top_.ours, false};
        more = !job->stretch.last;
        const bool last = job->stretch.last;
        workers.submit(std::move(job), last);
      }
      std::unique_ptr<Job> job = workers.next();
      if (!job) break;
      if (!left_.empty()) join_with_left(*job);
      assembler_.add(job->block);
      if (job->parsed.stop == Stop::end_of_array) {
        give_back(*job, workers);
        return true;
      }
      if (job->parsed.stop == Stop::cut) {
        left_ = job->stretch.view().substr(job->parsed.at);
        left_offset_ = job->stretch.offset + job->parsed.at;
      }
      const bool usual = job->stretch.memory.size() <= 4 * options_.stretch_bytes;
      if (usual) spare.push_back(std::move(job));
    }
    read_left();
    return false;
  }

  // The stretch does not begin where an event does: again, with what the one before has left.
  void join_with_left(Job& job) {
    left_ += job.stretch.view();
    job.stretch.set(std::move(left_), left_offset_);
    left_.clear();
    job.options.offset = left_offset_;
    job.options.final = job.stretch.view().size() > options_.longest_event;
    job.run();
    if (!job.options.final || job.parsed.stop != Stop::cut) return;
    // Longer than an event may be, and not at its end: nothing of it is kept.
    note(job.block.faults, Fault::event, left_offset_ + job.parsed.at);
    job.parsed.stop = Stop::end_of_text;
  }

  // What the file ends with: a cut event, or several behind one that is broken.
  void read_left() {
    if (left_.empty()) return cut("the file ends before its array of events does");
    kineto::Stretch stretch;
    stretch.set(left_, left_offset_);
    Block block;
    const Parsed parsed = parse_block(stretch.view(), {left_offset_, top_.ours, true}, block);
    assembler_.add(block);
    truncated_ = true;
    problem(left_offset_ + (parsed.stop == Stop::cut ? parsed.at : 0),
            parsed.stop == Stop::cut ? "the file ends within an event, which was not read"
                                     : "the file ends before its array of events does");
    left_.clear();
  }

  // Behind the array other members may come.
  void give_back(Job& job, Workers& workers) {
    std::string rest(job.stretch.view().substr(job.parsed.at));
    while (std::unique_ptr<Job> later = workers.next()) rest += later->stretch.view();
    window_.give_back(rest);
  }

  void report() {
    if (!source_.error().empty()) {
      damaged_ = true;
      problem(source_.file_offset(),
              fmt::format("{}; the text up to offset {} was read", source_.error(),
                          window_.offset() + window_.text().size()));
    }
    for (const auto& [fault, count] :
         {std::pair(Fault::escape, top_.faults.escapes),
          std::pair(Fault::value, top_.faults.values), std::pair(Fault::utf8, top_.faults.utf8)}) {
      if (count) note(assembler_.faults(), fault, 0, count);
    }
    constexpr const char* kTexts[kFaults] = {
        "not readable as events and passed over: {}",
        "backslashes that JSON does not know, kept as they are: {}",
        "texts that are not UTF-8: {}",
        "values that JSON does not have (NaN, Infinity and the like), left out: {}",
        "events without a time that is a number, left out: {}",
        "events that end before they begin, read as ending there: {}",
        "events without a duration that is a number, read as of none: {}",
        "events of a phase other than X, i, M, C, s, t, f, left out: {}",
        "events with a time or a duration of more than 73 years, left out: {}",
        "correlation ids beyond 4294967295, whose work is not joined to its call: {}",
    };
    for (size_t i = 0; i < kFaults; ++i) {
      const FaultCount& fault = assembler_.faults()[i];
      if (!fault.count) continue;
      damaged_ = damaged_ || static_cast<Fault>(i) == Fault::event;
      problem(fault.first,
              fmt::format(fmt::runtime(kTexts[i]), fault.count) + "; this is the first");
    }
  }

  const std::string path_;
  Trace& trace_;
  const KinetoOptions options_;
  ByteSource source_;
  TextWindow window_;
  Assembler assembler_;
  TopLevel top_;
  std::string left_;  // of a stretch that ended within an event
  uint64_t left_offset_ = 0;
  bool any_events_ = false, truncated_ = false, damaged_ = false;
};

}  // namespace

KinetoFile read_kineto(const std::string& path, Trace& trace, const KinetoOptions& options) {
  return Reader(path, trace, options).run();
}

}  // namespace gpuprof
