// SPDX-License-Identifier: Apache-2.0
#include "collector/python/modules.h"

#include <atomic>
#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/idle.h"
#include "collector/base/log.h"
#include "collector/python/is_compiling.h"
#include "collector/python/known_modules.h"
#include "collector/record/own_time.h"
#include "collector/record/recorder.h"
#include "collector/record/session.h"
#include "collector/record/shed.h"
#include "collector/torch/open_ranges.h"

namespace gpuprof {
namespace {

// None where the program uses torch.compile: its code is guarded against new hooks, and would be
// compiled again when they come and when they go. What it compiles with them in place does not see
// them. `always_call` (from 2.1): also when a module raises.
constexpr const char* kInstall = GPUPROF_PYTHON_IS_COMPILING R"(
def install(modules, entered, left):
    module = modules["torch.nn.modules.module"]
    dynamo = modules.get("torch._dynamo.eval_frame")
    backends = [*getattr(dynamo, "cached_backends", {}).values(), getattr(dynamo, "most_recent_backend", None)]
    if any(map(callable, backends)):
        return None
    torch = modules["torch"]

    def enter(module, inputs):
        if not is_compiling(torch):
            entered(module)

    def leave(module, inputs, result):
        if not is_compiling(torch):
            left(module)

    before = module.register_module_forward_pre_hook(enter)
    try:
        try:
            after = module.register_module_forward_hook(leave, always_call=True)
        except TypeError:
            after = module.register_module_forward_hook(leave)
    except BaseException:
        before.remove()
        raise

    def remove():
        try:
            before.remove()
        finally:
            after.remove()

    return remove


remove = install(modules, entered, left)
)";

std::atomic<const PythonApi*> g_python{nullptr};
std::atomic<bool> g_wanted{false};
// With the GIL.
PyObject* g_remove = nullptr;
bool g_refused = false;
bool g_settling = false;  // Python code of ours runs, and may run the pending call

PyObject* none(const PythonApi& python) {
  python.Py_IncRef(python.none);
  return python.none;
}

// Before and after the forward pass of a module.
PyObject* on_enter(PyObject*, PyObject* module) {
  const PythonApi& python = *g_python.load(std::memory_order_relaxed);
  if (!window_is_open() || t_state.blocked) return none(python);
  const OpenRange* const around = innermost_range(Kind::module);
  const KnownModule known = know_module(python, module, around ? around->key : nullptr);
  if (OpenRange* const range = open_range()) {
    range->key = module;
    range->kind = Kind::module;
    range->name = known.name;
    range->sequence = known.number;
    range->begin = now_ticks();
  }
  return none(python);
}

PyObject* on_leave(PyObject*, PyObject* module) {
  (void)close_range(module);
  return none(*g_python.load(std::memory_order_relaxed));
}

GPUPROF_IDLE_DATA constinit PyMethodDef g_enter{"gpuprof_enter", on_enter, kPyOneObject, nullptr};
GPUPROF_IDLE_DATA constinit PyMethodDef g_leave{"gpuprof_leave", on_leave, kPyOneObject, nullptr};

void say_refused(const char* why) {
  if (!g_refused) log_line(LogLevel::warn, "calls of modules are not recorded: %s", why);
  g_refused = true;
}

// False: an exception is set, which a signal's handler raised.
bool install(const PythonApi& py) {
  PyObject* const modules = py.PyImport_GetModuleDict();
  if (!modules || !py.PyDict_GetItemString(modules, "torch.nn.modules.module")) return true;
  const Owned names(py, py.PyDict_New());
  const Owned entered(py, py.PyCFunction_NewEx(&g_enter, nullptr, nullptr));
  const Owned left(py, py.PyCFunction_NewEx(&g_leave, nullptr, nullptr));
  if (!names.get() || !entered.get() || !left.get()) return clear_own_error(py);
  const auto set = [&](const char* name, PyObject* value) {
    return py.PyDict_SetItemString(names.get(), name, value) == 0;
  };
  const bool ready = set("__builtins__", py.PyEval_GetBuiltins()) && set("modules", modules) &&
                     set("entered", entered.get()) && set("left", left.get());
  const Owned result(
      py, ready ? py.PyRun_String(kInstall, kPyFileInput, names.get(), names.get()) : nullptr);
  PyObject* const remove = py.PyDict_GetItemString(names.get(), "remove");
  if (!result.get() || !remove) {
    if (!clear_own_error(py)) return false;
    say_refused("this PyTorch does not have the hooks that gpuprof knows (1.13 and later have)");
  } else if (remove == py.none) {
    say_refused("torch.compile would compile this program again for their hooks");
  } else {
    py.Py_IncRef(remove);
    g_remove = remove;
  }
  return true;
}

// The same. PyTorch's handle takes a hook out at most once: what was cut short is done again.
bool uninstall(const PythonApi& python) {
  const Owned result(python, python.PyObject_CallFunctionObjArgs(g_remove, nullptr));
  if (!result.get() && !clear_own_error(python)) return false;
  python.Py_DecRef(g_remove);
  g_remove = nullptr;
  forget_modules(python);
  return true;
}

int on_pending_call(void*) { return modules_settle() ? 0 : -1; }

void want(bool wanted) {
  const PythonApi* const python = g_python.load(std::memory_order_acquire);
  if (!python || g_wanted.exchange(wanted) == wanted || !python->Py_IsInitialized()) return;
  // The queue may be full. Then the next window asks again.
  if (python->Py_AddPendingCall(on_pending_call, nullptr) != 0) g_wanted = !wanted;
}

}  // namespace

void modules_session_begins(const PythonApi& python) {
  if (std::strstr(python.Py_GetVersion(), "free-threading")) {
    if (activity_on(Activity::module))
      say_refused("this Python has no GIL, by which they are told apart");
    return;
  }
  g_python.store(&python, std::memory_order_release);
}

void modules_begin() { want(activity_on(Activity::module) && !is_shed(ShedKind::operators)); }
void modules_end() { want(false); }

namespace {
// A thread that no longer exists may have been at it.
void settle_again() { g_settling = false; }
GPUPROF_FORGET_IN_CHILD(settle_again);
}  // namespace

bool modules_settle() {
  const PythonApi* const python = g_python.load(std::memory_order_acquire);
  const bool wanted = g_wanted.load();
  if (!python || wanted == (g_remove != nullptr) || g_refused || g_settling) return true;
  if (python->PyErr_Occurred()) return true;
  g_settling = true;
  const uint64_t begin = now_ticks();
  const bool done = wanted ? install(*python) : uninstall(*python);
  g_settling = false;
  note_own_time(OwnTime::python, begin, now_ticks());
  return done;
}

}  // namespace gpuprof
