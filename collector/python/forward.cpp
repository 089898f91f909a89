// SPDX-License-Identifier: Apache-2.0
#include "collector/python/forward.h"

#include <atomic>
#include <cstring>

#include "collector/base/clock.h"
#include "collector/base/fork.h"
#include "collector/base/idle.h"
#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"

namespace gpuprof {
namespace {

// `slot`: whether a class may be called by what lies where tp_call should be: one that can be
// called, one that cannot, and nn.Module tell. `may_train`: whether there is an optimizer: PyTorch
// marks the step of its class when the first one is made.
constexpr const char* kLook = R"(
class Callable:
    def __call__(self):
        pass


class Other:
    pass


def look(base, slot, patch):
    if not slot((Callable, Other, base)):
        return
    seen = set()
    left = [base]
    while left:
        found = left.pop()
        if id(found) not in seen:
            seen.add(id(found))
            patch(found)
            left.extend(type.__subclasses__(found))


def may_train(modules):
    optimizers = modules.get("torch.optim.optimizer")
    left = [optimizers.Optimizer] if hasattr(optimizers, "Optimizer") else []
    while left:
        found = left.pop()
        if getattr(getattr(found, "step", None), "hooked", False):
            return True
        left.extend(type.__subclasses__(found))
    return False


look(base, slot, patch)
)";

// The same in every CPython with a GIL from 3.8 on, on 64 bits: object.h and cpython/object.h.
constexpr size_t kCallSlot = 128;
constexpr uint64_t kLongestWait = 5'000'000'000;  // ns

// How long after a look the next one comes, in ns: each walks over all classes of modules.
uint64_t gap_after(uint64_t looks) {
  constexpr uint64_t kSecond = 1'000'000'000;
  return looks < 60 ? 0 : looks < 120 ? 5 * kSecond : 30 * kSecond;
}

using Call = PyObject* (*)(PyObject* self, PyObject* arguments, PyObject* names);

std::atomic<const PythonApi*> g_python{nullptr};
Call g_call = nullptr;              // the slot's own function; with the GIL
bool (*g_trains)() = nullptr;       // c10::GradMode::is_enabled
std::atomic<bool> g_asked{false};   // a look is due
std::atomic<bool> g_queued{false};  // on_pending_call waits for Python's main thread
std::atomic<uint64_t> g_asked_ns{0};
std::atomic<bool> g_said{false};  // that no look comes
std::atomic<uint64_t> g_looks{0};
// With the GIL.
PyObject* g_may_train = nullptr;  // the function
bool g_trained = false;           // it has found one
bool g_looking = false;           // Python code of ours runs, and may run the pending call
constinit thread_local bool t_inside __attribute__((tls_model("initial-exec"))) = false;

Call& slot_of(PyObject* type) {
  return *reinterpret_cast<Call*>(reinterpret_cast<char*>(type) + kCallSlot);
}

bool is_wanted() { return session_is_live() && session().tracker.wants(StepSource::forward); }

// False: an exception of the program's is set, which a signal's handler raised.
bool look_for_optimizers(const PythonApi& py) {
  if (g_trained || !g_may_train || session().tracker.source() != StepSource::automatic) return true;
  PyObject* const modules = py.PyImport_GetModuleDict();
  const Owned found(
      py, modules ? py.PyObject_CallFunctionObjArgs(g_may_train, modules, nullptr) : nullptr);
  if (!found.get()) return clear_own_error(py);
  g_trained = py.PyObject_IsTrue(found.get()) == 1;
  return true;
}

PyObject* on_call(PyObject* self, PyObject* arguments, PyObject* names) {
  if (t_inside || !is_wanted()) return g_call(self, arguments, names);
  t_inside = true;
  const bool trains = !g_trains || g_trains();
  PyObject* result = nullptr;
  if (trains || look_for_optimizers(*g_python.load(std::memory_order_relaxed))) {
    step_forward(self, trains, g_trained);
    result = g_call(self, arguments, names);
  }
  t_inside = false;
  return result;
}

PyObject* boolean(const PythonApi& python, bool value) {
  PyObject* const out =
      python.PyDict_GetItemString(python.PyEval_GetBuiltins(), value ? "True" : "False");
  PyObject* const result = out ? out : python.none;
  python.Py_IncRef(result);
  return result;
}

PyObject* on_slot(PyObject*, PyObject* classes) {
  const PythonApi& python = *g_python.load(std::memory_order_relaxed);
  PyObject* const callable = python.PyTuple_GetItem(classes, 0);
  PyObject* const other = python.PyTuple_GetItem(classes, 1);
  PyObject* const base = python.PyTuple_GetItem(classes, 2);
  if (!callable || !other || !base) return boolean(python, false);
  const Call own = slot_of(callable);
  const bool known = own && !slot_of(other) && (slot_of(base) == own || slot_of(base) == on_call);
  if (known) g_call = own;
  return boolean(python, known);
}

PyObject* on_patch(PyObject*, PyObject* type) {
  const PythonApi& python = *g_python.load(std::memory_order_relaxed);
  if (slot_of(type) == g_call) slot_of(type) = on_call;
  python.Py_IncRef(python.none);
  return python.none;
}

GPUPROF_IDLE_DATA constinit PyMethodDef g_slot_method{"gpuprof_slot", on_slot, kPyOneObject,
                                                      nullptr};
GPUPROF_IDLE_DATA constinit PyMethodDef g_patch_method{"gpuprof_patch", on_patch, kPyOneObject,
                                                       nullptr};

// With the GIL. An exception that is left is one that a signal's handler raised.
void look(const PythonApi& py) {
  PyObject* const modules = py.PyImport_GetModuleDict();
  PyObject* const module =
      modules ? py.PyDict_GetItemString(modules, "torch.nn.modules.module") : nullptr;
  if (!module || module == py.none || py.PyErr_Occurred()) return;
  const Owned base(py, py.PyObject_GetAttrString(module, "Module"));
  const Owned names(py, py.PyDict_New());
  const Owned slot(py, py.PyCFunction_NewEx(&g_slot_method, nullptr, nullptr));
  const Owned patch(py, py.PyCFunction_NewEx(&g_patch_method, nullptr, nullptr));
  const auto set = [&](const char* name, PyObject* value) {
    return value && py.PyDict_SetItemString(names.get(), name, value) == 0;
  };
  if (names.get() && set("__builtins__", py.PyEval_GetBuiltins()) && set("base", base.get()) &&
      set("slot", slot.get()) && set("patch", patch.get())) {
    // The class statement names its module.
    const Owned name(py, py.PyObject_GetAttrString(module, "__name__"));
    set("__name__", name.get());
    if (py.PyErr_Occurred()) py.PyErr_Clear();
    const Owned result(py, py.PyRun_String(kLook, kPyFileInput, names.get(), names.get()));
    if (!g_may_train) {
      g_may_train = py.PyDict_GetItemString(names.get(), "may_train");
      if (g_may_train) py.Py_IncRef(g_may_train);
    }
  } else if (py.PyErr_Occurred()) {
    py.PyErr_Clear();
  }
  if (!g_trains) {
    void* const symbol = exported_symbol("libc10", "_ZN3c108GradMode10is_enabledEv");
    std::memcpy(&g_trains, &symbol, sizeof symbol);
  }
}

void ask(const PythonApi& python);

// With the GIL. False: an exception is set, which a signal's handler raised.
bool look_if_asked() {
  const PythonApi* const python = g_python.load(std::memory_order_acquire);
  if (!python || g_looking || python->PyErr_Occurred()) return true;
  if (!g_asked.exchange(false) || !is_wanted()) return true;
  g_looking = true;
  look(*python);
  g_looking = false;
  if (!python->PyErr_Occurred()) return true;
  ask(*python);
  return false;
}

int on_pending_call(void*) {
  g_queued = false;
  return look_if_asked() ? 0 : -1;
}

// What a child's interpreter was asked may be gone; its classes stay as they are.
void forget_looks_in_child() {
  g_asked = g_queued = g_said = false;
  g_looking = false;
  g_looks = g_asked_ns = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_looks_in_child);

void ask(const PythonApi& python) {
  if (!python.Py_IsInitialized() || g_asked.exchange(true)) return;
  g_asked_ns = monotonic_ns();
  ++g_looks;
  // Once: it is the program's queue, too, and may be full.
  if (g_queued.exchange(true)) return;
  if (python.Py_AddPendingCall(on_pending_call, nullptr) != 0) g_queued = false;
}

// Of the many events those at which nothing is half done. Most of them come from Python code.
bool is_harmless(const char* event) {
  for (const char* const one :
       {"import", "open", "compile", "exec", "builtins.id", "sys._getframe", "ctypes.dlsym"}) {
    if (std::strcmp(event, one) == 0) return true;
  }
  return false;
}

void say_that_nothing_is_seen() {
  if (session().config.step.source != StepSource::forward || !g_asked.load() ||
      monotonic_ns() - g_asked_ns.load() < kLongestWait || g_said.exchange(true)) {
    return;
  }
  log_line(
      LogLevel::warn,
      "steps: calls of modules are not seen yet: Python's main thread has run no code for %d s, "
      "and other threads nothing that lets gpuprof in",
      static_cast<int>(kLongestWait / 1'000'000'000));
}

}  // namespace

void forward_session_begins(const PythonApi& python) {
  if (sizeof(void*) != 8 || std::strstr(python.Py_GetVersion(), "free-threading")) return;
  g_python.store(&python, std::memory_order_release);
  g_looks = 0;
  ask(python);
}

void forward_tick() {
  const PythonApi* const python = g_python.load(std::memory_order_acquire);
  if (!python || !is_wanted()) return;
  say_that_nothing_is_seen();
  if (monotonic_ns() - g_asked_ns.load() >= gap_after(g_looks.load())) ask(*python);
}

bool forward_audit(const char* event) {
  if (!g_asked.load(std::memory_order_relaxed) || !is_harmless(event)) return true;
  const PythonApi* const python = g_python.load(std::memory_order_acquire);
  return !python || python->Py_IsFinalizing() || look_if_asked();
}

}  // namespace gpuprof
