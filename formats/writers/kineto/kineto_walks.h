// SPDX-License-Identifier: Apache-2.0
// The order in which slices of a row stand in a Kineto-style document, and the track of each. A
// walk is a value: a copy of it, taken where a stretch of the events begins, goes through that
// stretch again on another thread.
#pragma once

#include <cstddef>
#include <span>

#include "formats/trace/trace.h"
#include "formats/views/slices.h"
#include "formats/writers/kineto/kineto_events.h"

namespace gpuprof {

// Slices of a host lane, with steps among them, from where the walk stands.
struct HostWalk {
  TrackSplitter splitter{Overlap::nest};
  size_t step = 0;  // the next one

  // `slice(track, placed, event or null for a step)`, `moment(event)`.
  template <typename OnSlice, typename OnMoment>
  void run(const Trace& trace, EventTable::Range events, std::span<const Slice> steps, bool last,
           const OnSlice& on_slice, const OnMoment& on_moment) {
    const auto place = [&](Slice slice, const Event* event) {
      const size_t track = splitter.place(slice, [](size_t, int64_t) {});
      on_slice(track, slice, event);
    };
    for (const Event& event : events) {
      if (is_instant(trace.shape(event).kind)) {
        on_moment(event);
        continue;
      }
      const Slice slice{event.index, event.begin, event.end};
      for (; step < steps.size() && earlier(steps[step], slice); ++step) {
        place(steps[step], nullptr);
      }
      place(slice, &event);
    }
    for (; last && step < steps.size(); ++step) place(steps[step], nullptr);
  }
};

// Work of a stream, with the annotations that fit between it.
struct StreamWalk {
  TrackSplitter splitter{Overlap::apart};
  size_t annotation = 0;  // the next one

  // `work(track, placed, event)`, `annotated(slice)`.
  template <typename OnWork, typename OnAnnotation>
  void run(const KinetoEvents& shapes, EventTable::Range events, std::span<const Slice> annotations,
           bool last, const OnWork& on_work, const OnAnnotation& on_annotation) {
    for (const Event& event : events) {
      if (!shapes.is_drawn_work(event.shape)) continue;
      Slice slice{event.index, event.begin, event.end};
      for (; annotation < annotations.size() && !earlier(slice, annotations[annotation]);
           ++annotation) {
        on_annotation(annotations[annotation]);
      }
      const size_t track = splitter.place(slice, [](size_t, int64_t) {});
      on_work(track, slice, event);
    }
    for (; last && annotation < annotations.size(); ++annotation) {
      on_annotation(annotations[annotation]);
    }
  }
};

}  // namespace gpuprof
