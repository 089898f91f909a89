// SPDX-License-Identifier: Apache-2.0
#include "collector/python/bridge.h"

#include <atomic>
#include <cstring>

#include "collector/collector.h"
#include "collector/log.h"
#include "collector/python/python_api.h"
#include "collector/session.h"

namespace gpuprof {
namespace {

constexpr const char* kOptimizers = "torch.optim.optimizer";

// Before 2.0 there is no hook for all optimizers, but a method that each of them calls when it is
// made, which wraps the step of its class.
constexpr const char* kInstall = R"(
def install(module, stepped):
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(stepped)
        return
    before = module.Optimizer._hook_for_profile

    def _hook_for_profile(self):
        before(self)
        step = type(self).step
        if getattr(step, "tells_gpuprof", False):
            return

        def step_and_tell(self, *args, **kwargs):
            result = step(self, *args, **kwargs)
            stepped(self, args, kwargs)
            return result

        step_and_tell.__dict__.update(getattr(step, "__dict__", {}))
        step_and_tell.__name__, step_and_tell.__doc__ = "step", step.__doc__
        step_and_tell.__wrapped__ = step
        step_and_tell.tells_gpuprof = True
        type(self).step = step_and_tell

    module.Optimizer._hook_for_profile = _hook_for_profile


install(module, stepped)
)";

constinit PythonApi g_python{};
constinit PythonState g_state = PythonState::absent;
std::atomic<bool> g_torch_seen{false};  // its import has begun
std::atomic<bool> g_installed{false};
std::atomic<bool> g_watching{false};

// Called by PyTorch after each step of an optimizer, with (optimizer, args, kwargs).
PyObject* on_optimizer_step(PyObject*, PyObject* arguments) {
  const PyObject* const optimizer = g_python.PyTuple_GetItem(arguments, 0);
  if (!optimizer) return nullptr;  // the exception is set
  step_optimizer(optimizer);
  g_python.Py_IncRef(g_python.none);
  return g_python.none;
}
constinit PyMethodDef g_step_method{"gpuprof_step", on_optimizer_step, kPyVarargs, nullptr};

// Takes over a new reference for a scope.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {}
  ~Owned() {
    if (object_) g_python.Py_DecRef(object_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// A module that is there but still being executed lacks what its later lines define.
bool is_complete(PyObject* module) {
  const PythonApi& py = g_python;
  const Owned spec(py.PyObject_GetAttrString(module, "__spec__"));
  const Owned busy(spec.get() ? py.PyObject_GetAttrString(spec.get(), "_initializing") : nullptr);
  if (!busy.get()) {
    py.PyErr_Clear();
    return spec.get() != nullptr;
  }
  return py.PyObject_IsTrue(busy.get()) == 0;
}

bool run_install(PyObject* module) {
  const PythonApi& py = g_python;
  const Owned names(py.PyDict_New());
  const Owned stepped(py.PyCFunction_NewEx(&g_step_method, nullptr, nullptr));
  if (!names.get() || !stepped.get()) return false;
  if (py.PyDict_SetItemString(names.get(), "__builtins__", py.PyEval_GetBuiltins()) != 0 ||
      py.PyDict_SetItemString(names.get(), "module", module) != 0 ||
      py.PyDict_SetItemString(names.get(), "stepped", stepped.get()) != 0) {
    return false;
  }
  const Owned result(py.PyRun_String(kInstall, kPyFileInput, names.get(), names.get()));
  return result.get() != nullptr;
}

// With the GIL. Registers the hook once PyTorch's optimizers are complete.
void look_for_torch() {
  const PythonApi& py = g_python;
  if (g_installed.load(std::memory_order_relaxed) || py.PyErr_Occurred()) return;
  PyObject* const modules = py.PyImport_GetModuleDict();
  PyObject* const module = modules ? py.PyDict_GetItemString(modules, kOptimizers) : nullptr;
  if (!module || module == py.none || !is_complete(module) || g_installed.exchange(true)) return;
  if (run_install(module)) return;
  py.PyErr_Clear();
  log_line(LogLevel::warn,
           "this PyTorch has no hook for the steps of its optimizers that gpuprof knows; set "
           "GPUPROF_STEP to what else marks a step");
}

// Audit events come by the thousand; only imports matter, and those only from torch's own on.
int on_audit(const char* event, PyObject* arguments, void*) {
  if (event[0] != 'i' || std::strcmp(event, "import") != 0 || !arguments) return 0;
  if (g_installed.load(std::memory_order_relaxed)) return 0;
  if (!g_torch_seen.load(std::memory_order_relaxed)) {
    PyObject* const name = g_python.PyTuple_GetItem(arguments, 0);
    const char* const text = name ? g_python.PyUnicode_AsUTF8(name) : nullptr;
    if (!text) g_python.PyErr_Clear();
    if (!text || std::strcmp(text, "torch") != 0) return 0;
    g_torch_seen.store(true, std::memory_order_relaxed);
  }
  look_for_torch();
  return 0;
}

// In an interpreter that runs already: torch may have been imported long ago.
int on_pending_call(void*) {
  g_torch_seen.store(true, std::memory_order_relaxed);
  look_for_torch();
  if (!g_installed.load()) g_python.PySys_AddAuditHook(on_audit, nullptr);
  return 0;
}

}  // namespace

void python_watch() {
  if (!wants_injection() || g_watching.load(std::memory_order_relaxed)) return;
  g_state = find_python(g_python);
  if (g_state != PythonState::known || g_watching.exchange(true)) return;
  if (!g_python.Py_IsInitialized()) {
    g_python.PySys_AddAuditHook(on_audit, nullptr);
  } else {
    g_python.Py_AddPendingCall(on_pending_call, nullptr);
  }
}

void python_session_begins() {
  python_watch();
  if (g_state != PythonState::unknown) return;
  log_line(LogLevel::warn,
           "this Python has no audit hooks (CPython 3.8 and later have): what PyTorch's optimizers "
           "do is not seen");
}

}  // namespace gpuprof
