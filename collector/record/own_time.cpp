// SPDX-License-Identifier: Apache-2.0
#include "collector/record/own_time.h"

#include <algorithm>

#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

constexpr double kLeastNs = 5000;

bool is_worth_a_record(uint64_t begin, uint64_t end) {
  return end > begin && static_cast<double>(end - begin) >= kLeastNs * session().clock.ticks_per_ns;
}

void write(const Record& own) {
  Record* const place = reserve_record();
  if (!place) return;
  *place = own;
  commit_record(place);
}

}  // namespace

void note_own_time(OwnTime what, uint64_t begin, uint64_t end) {
  if (!t_state.next || !window_is_open() || !is_worth_a_record(begin, end)) return;
  write(own_time_record(what, current_tid(), begin, end));
}

void note_own_time_of_all(OwnTime what, uint64_t begin, uint64_t end) {
  if (window_is_open() && is_worth_a_record(begin, end)) {
    write(own_time_record(what, 0, begin, end));
  }
}

}  // namespace gpuprof
