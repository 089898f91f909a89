// SPDX-License-Identifier: Apache-2.0
#include "collector/python/frame_check.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/base/own_memory.h"
#include "collector/python/calling_frames.h"
#include "collector/record/session.h"
#include "collector/stacks/stacks.h"

namespace gpuprof {
namespace {

constexpr size_t kCheckedFrames = 16;
constexpr size_t kMostThreads = 256;
constexpr int kMostLooks = 3;

constinit std::atomic<FramesState> g_state{FramesState::off};
constinit char g_note[200] = "";

// Set before g_state is `known`.
constinit PythonApi g_python{};
constinit Immortal<SampledFrames> g_reader;
constinit KnownInterpreter g_known{};
constinit int g_looks = 0;  // that did not agree

// In Py_GetVersion(): "3.12.1 (main, Feb ...".
int release_length(const PythonApi& python) {
  return static_cast<int>(std::strcspn(python.Py_GetVersion(), " "));
}

// The functions came with 3.9; before, the attributes say the same.
PyObject* code_of(PyObject* frame) {
  if (g_python.PyFrame_GetCode) return g_python.PyFrame_GetCode(frame);
  return g_python.PyObject_GetAttrString(frame, "f_code");
}

PyObject* caller_of(PyObject* frame) {
  if (g_python.PyFrame_GetBack) return g_python.PyFrame_GetBack(frame);
  return g_python.PyObject_GetAttrString(frame, "f_back");
}

// Whether a text of Python's is the one read, as far as it was read.
bool same_text(PyObject* object, const char* read, size_t bytes, size_t most) {
  const char* const text = object ? g_python.PyUnicode_AsUTF8(object) : nullptr;
  if (!text) {
    g_python.PyErr_Clear();  // not to be had as UTF-8
    return object != nullptr;
  }
  if (std::strncmp(text, read, bytes) != 0) return false;
  return text[bytes] == '\0' || bytes + 4 > most;
}

bool same_frame(PyObject* frame, PyObject* code, const SampledFrames::RawFrame& raw) {
  if (raw.code != reinterpret_cast<uint64_t>(code)) return false;
  CodeNames names;
  if (!g_reader->names_of(raw, names)) return false;
  const Owned file(g_python, g_python.PyObject_GetAttrString(code, "co_filename"));
  Owned function(g_python, g_python.PyObject_GetAttrString(code, "co_qualname"));
  if (!function.get()) {
    g_python.PyErr_Clear();
    function.reset(g_python.PyObject_GetAttrString(code, "co_name"));
  }
  const int line = g_python.PyFrame_GetLineNumber(frame);  // -1: an instruction of no line
  return same_text(file.get(), names.file, names.file_bytes, sizeof names.file) &&
         same_text(function.get(), names.function, names.function_bytes, sizeof names.function) &&
         (line < 1 || names.line == line);
}

// What the reader makes of this thread's frames against what Python does.
bool reader_agrees(PyObject* innermost, uint64_t state) {
  size_t count = 0;
  SampledFrames::Seen seen{};
  if (g_reader->walk(state, seen, count) != SampledFrames::Outcome::read) return false;
  g_python.Py_IncRef(innermost);
  Owned frame(g_python, innermost);
  for (size_t i = 0; i < count && i < kCheckedFrames; ++i) {
    if (!frame.get() || frame.get() == g_python.none) return false;
    const Owned code(g_python, code_of(frame.get()));
    if (!code.get() || !same_frame(frame.get(), code.get(), g_reader->raw()[i])) return false;
    frame.reset(caller_of(frame.get()));
  }
  const bool ended = !frame.get() || frame.get() == g_python.none;
  return ended || count >= kCheckedFrames;
}

bool find_own_thread() {
  SampledFrames::ThreadPlace threads[kMostThreads];
  const size_t count = g_reader->threads(g_known.oldest, g_known.address, threads, kMostThreads);
  for (size_t i = 0; i < count; ++i) {
    if (threads[i].tid == current_tid()) return true;
  }
  return false;
}

// Takes the look, or leaves it for another time where no Python code runs.
void look() {
  FramesState due = FramesState::wanted;
  if (!g_state.compare_exchange_strong(due, FramesState::looking, std::memory_order_acq_rel)) {
    return;
  }
  PyObject* const frame = g_python.PyErr_Occurred() ? nullptr : g_python.PyEval_GetFrame();
  if (!frame) return g_state.store(FramesState::wanted, std::memory_order_release);
  const auto state = reinterpret_cast<uint64_t>(g_python.PyThreadState_Get());
  g_known.oldest = g_reader->oldest_of(state, g_known.address);
  // Audit events come from every interpreter; the program's own is the one whose stacks are read.
  const auto main = reinterpret_cast<uint64_t>(g_python.PyInterpreterState_Main());
  if (g_known.oldest != 0 && g_known.address != main) {
    return g_state.store(FramesState::wanted, std::memory_order_release);
  }
  if (g_known.oldest == 0 || !find_own_thread() || !reader_agrees(frame, state)) {
    g_python.PyErr_Clear();
    if (++g_looks < kMostLooks) {  // what runs at the moment may be out of the ordinary
      return g_state.store(FramesState::wanted, std::memory_order_release);
    }
    return frames_give_up(
        "this CPython %.*s keeps its frames in another way than that release does",
        release_length(g_python), g_python.Py_GetVersion());
  }
  g_state.store(FramesState::known, std::memory_order_release);
}

int on_pending_look(void*) {
  look();
  return 0;
}

}  // namespace

void frames_give_up(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(g_note, sizeof g_note, format, arguments);
  va_end(arguments);
  g_state.store(FramesState::off, std::memory_order_release);
  log_line(LogLevel::warn, "no stacks of Python: %s", g_note);
}

void frames_session_begins(const PythonApi& python) {
  const bool wanted = activity_on(Activity::samples) || stacks_are_wanted();
  if (!wanted || g_state.load() != FramesState::off) return;
  g_python = python;
  const void* const type = program_symbol("PyCode_Type");
  const char* why = "it does not export its code objects' type";
  g_known.code_type = reinterpret_cast<uint64_t>(type);
  if (!type || !find_python_layout(python.Py_GetVersion(), program_symbol("_PyRuntime"),
                                   g_known.layout, why)) {
    return frames_give_up("of CPython %.*s %s", release_length(python), python.Py_GetVersion(),
                          why);
  }
  if (!can_copy_own_memory()) {
    return frames_give_up(
        "the kernel refuses both process_vm_readv and /proc/thread-self/mem of this process");
  }
  if (!g_reader->begin(g_known.layout, g_known.code_type)) return frames_give_up("no memory");
  calling_frames_session_begins(python);
  g_state.store(FramesState::wanted, std::memory_order_release);
  if (python.Py_IsInitialized()) python.Py_AddPendingCall(on_pending_look, nullptr);
}

void frames_look() {
  if (g_state.load(std::memory_order_relaxed) == FramesState::wanted) look();
}

const char* frames_note() { return g_note; }

FramesState frames_state() { return g_state.load(std::memory_order_acquire); }
const KnownInterpreter& known_interpreter() { return g_known; }
SampledFrames& sampled_frames() { return *g_reader; }

namespace {
void forget_frames() {
  g_state = FramesState::off;
  g_looks = 0;
  g_note[0] = '\0';
}
GPUPROF_FORGET_IN_CHILD(forget_frames);
}  // namespace

}  // namespace gpuprof
