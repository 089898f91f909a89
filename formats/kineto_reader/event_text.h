// SPDX-License-Identifier: Apache-2.0
// One event of a trace file, taken apart but not understood.
#pragma once

#include <string_view>
#include <vector>

#include "formats/kineto_reader/scan.h"

namespace gpuprof::kineto {

struct Member {
  std::string_view key;  // as it lies between its quotes
  Value value;
  std::string_view text;  // the value as it is in the file, with its quotes
};

struct EventText {
  char phase = 0;
  Value category, name, pid, tid, time, duration, id, scope, binding;
  std::vector<Member> args;  // capacity is kept from event to event

  void clear();
};

enum class EventEnd {
  whole,
  cut,    // the text ends before the event does
  wrong,  // something else than JSON
};

// Reads the object at `at`, which holds a '{', and sets `at` behind it. Views point into the text.
EventEnd read_event(const char*& at, const char* end, EventText& out);

}  // namespace gpuprof::kineto
