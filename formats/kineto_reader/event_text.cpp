// SPDX-License-Identifier: Apache-2.0
#include "formats/kineto_reader/event_text.h"

namespace gpuprof::kineto {
namespace {

// Members of the object whose '{' is at `at`; `member` gets each key with the place of its value,
// and returns the place behind it, or null.
template <typename Each>
EventEnd read_members(const char*& at, const char* end, Each member) {
  const char* p = skip_space(at + 1, end);
  if (p < end && *p == '}') {
    at = p + 1;
    return EventEnd::whole;
  }
  while (p < end) {
    if (*p != '"') return EventEnd::wrong;
    const char* const begin = p;
    bool escaped = false;
    const char* const quote = string_end(p + 1, end, escaped);
    if (!quote) return EventEnd::cut;
    p = skip_space(quote + 1, end);
    if (p == end) return EventEnd::cut;
    if (*p != ':') return EventEnd::wrong;
    p = skip_space(p + 1, end);
    const std::string_view key(begin + 1, static_cast<size_t>(quote - begin - 1));
    const EventEnd value = member(key, p);
    if (value != EventEnd::whole) return value;
    p = skip_space(p, end);
    if (p == end) return EventEnd::cut;
    if (*p == '}') {
      at = p + 1;
      return EventEnd::whole;
    }
    if (*p != ',') return EventEnd::wrong;
    p = skip_space(p + 1, end);
    if (p < end && *p == '}') {  // a comma too many
      at = p + 1;
      return EventEnd::whole;
    }
  }
  return EventEnd::cut;
}

EventEnd take(const char*& at, const char* end, Value& out) {
  const char* const behind = read_value(at, end, out);
  if (!behind) return EventEnd::cut;
  if (behind == at) return EventEnd::wrong;
  at = behind;
  return EventEnd::whole;
}

// Where the value of an event's key goes; null: it is not kept.
Value* place_of(std::string_view key, EventText& out) {
  switch (key.size()) {
    case 1: return key == "s" ? &out.scope : nullptr;
    case 2:
      if (key == "ts") return &out.time;
      if (key == "id") return &out.id;
      return key == "bp" ? &out.binding : nullptr;
    case 3:
      switch (key[0]) {
        case 'c': return key == "cat" ? &out.category : nullptr;
        case 'p': return key == "pid" ? &out.pid : nullptr;
        case 't': return key == "tid" ? &out.tid : nullptr;
        case 'd': return key == "dur" ? &out.duration : nullptr;
        default: return nullptr;
      }
    case 4: return key == "name" ? &out.name : nullptr;
    default: return nullptr;
  }
}

}  // namespace

void EventText::clear() {
  phase = 0;
  for (Value* value : {&category, &name, &pid, &tid, &time, &duration, &id, &scope, &binding}) {
    value->type = ValueType::none;
    value->text = {};
  }
  args.clear();
}

EventEnd read_event(const char*& at, const char* end, EventText& out) {
  out.clear();
  return read_members(at, end, [&](std::string_view key, const char*& p) {
    if (key == "args" && p < end && *p == '{') {
      return read_members(p, end, [&](std::string_view name, const char*& value_at) {
        Member& member = out.args.emplace_back();
        member.key = name;
        const char* const begin = value_at;
        const EventEnd ended = take(value_at, end, member.value);
        member.text = {begin, static_cast<size_t>(value_at - begin)};
        return ended;
      });
    }
    Value ignored;
    Value* const place = place_of(key, out);
    const EventEnd ended = take(p, end, place ? *place : ignored);
    if (key == "ph" && ignored.type == ValueType::string && !ignored.text.empty()) {
      out.phase = ignored.text[0];
    }
    return ended;
  });
}

}  // namespace gpuprof::kineto
