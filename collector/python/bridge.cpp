// SPDX-License-Identifier: Apache-2.0
#include "collector/python/bridge.h"

#include <atomic>
#include <cstring>

#include "collector/base/idle.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/python/forward.h"
#include "collector/python/frame_check.h"
#include "collector/python/is_compiling.h"
#include "collector/python/known_groups.h"
#include "collector/python/modules.h"
#include "collector/python/python_api.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/samples/data_worker.h"

namespace gpuprof {
namespace {

constexpr const char* kOptimizers = "torch.optim.optimizer";

// `tell` is called where PyTorch's wrapper around step() ends. A step() that calls its base class's
// passes through two of them: the outermost counts. In a step that torch.compile compiles the hook
// is nothing, and traced as that: anything else would break the graph.
// Before 2.0 there is no hook for all optimizers, but a method that each of them calls when it is
// made, which wraps the step of its class.
// DeepSpeed's ZeRO steps one optimizer for each group of parameters in turn. What steps then is the
// group, told apart by its first parameter; the first group goes by the optimizer. If that does not
// come again, the first one that does takes its place. A parameter is known by its id alone, since
// a tensor with a weak reference cannot be swapped (torch.utils.swap_tensors). So ids tell groups
// apart as long as the optimizer's state has the first of them: what it holds stays alive. An
// optimizer whose first parameter stays, or of which no state does, steps as a whole.
// No step is what only makes an optimizer's state: `no_steps` has the functions of PyTorch's
// checkpoints, of DeepSpeed and of Megatron that call step() for that.
constexpr const char* kInstall = GPUPROF_PYTHON_IS_COMPILING R"(
def install(module, stepped, getframe):
    from _weakref import ref
    torch = getattr(module, "torch", None)
    no_steps = {"_init_optim_state", "initialize_optimizer_states", "_init_optimizer_states_with_dummy_values"}
    known = {}

    class Known:
        __slots__ = "optimizer", "first", "newest", "others", "rotates", "whole"

    def what_steps(optimizer):
        try:
            group = next(group for group in optimizer.param_groups if len(group["params"]))
            first = next(iter(group["params"]))
            now = id(first)
            one = known.get(id(optimizer))
            if one is None or one.optimizer() is not optimizer:
                if len(known) >= 4096:
                    known.clear()
                one = Known()
                one.optimizer, one.first, one.newest, one.others = ref(optimizer), now, now, set()
                one.rotates = one.whole = False
                known[id(optimizer)] = one
                return optimizer
            before, one.newest = one.newest, now
            if one.whole:
                return optimizer
            if now != one.first and before == one.first and one.first not in map(id, optimizer.state):
                one.whole = True
            elif now == before and not one.rotates or len(one.others) == 4096:
                one.whole = True
            elif now != one.first and now != before and now not in one.others:
                one.rotates = True
                one.others.add(now)
                return first
            one.first = now
            one.others.clear()
            return optimizer
        except Exception:
            return optimizer

    def ends_a_step(optimizer):
        frame = getframe(2)
        code = frame.f_code
        frame = frame.f_back
        while frame is not None:
            if frame.f_code is code and frame.f_locals.get("self") is optimizer:
                return False
            if frame.f_code.co_name in no_steps:
                return False
            frame = frame.f_back
        return True

    is_registered = False  # in full: no signal's handler has raised meanwhile, after which all is done again

    def tell(optimizer, args, kwargs):
        if not is_compiling(torch) and is_registered and ends_a_step(optimizer):
            stepped(what_steps(optimizer))

    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(tell)
        is_registered = True
        return
    before = module.Optimizer._hook_for_profile

    def _hook_for_profile(self):
        before(self)
        step = type(self).step
        if getattr(step, "tells_gpuprof", False):
            return

        def step_and_tell(self, *args, **kwargs):
            result = step(self, *args, **kwargs)
            tell(self, args, kwargs)
            return result

        step_and_tell.__dict__.update(getattr(step, "__dict__", {}))
        step_and_tell.__name__, step_and_tell.__doc__ = "step", step.__doc__
        step_and_tell.__wrapped__ = step
        step_and_tell.tells_gpuprof = True
        type(self).step = step_and_tell

    is_registered = True
    module.Optimizer._hook_for_profile = _hook_for_profile


install(module, stepped, getframe)
)";

constinit PythonApi g_python{};
constinit PythonState g_state = PythonState::absent;
std::atomic<bool> g_installed{false};  // the hook for optimizers
std::atomic<bool> g_audited{false};    // the audit hook
std::atomic<bool> g_pending{false};    // on_pending_call waits for the main thread

// Called after each step of an optimizer.
PyObject* on_optimizer_step(PyObject*, PyObject* optimizer) {
  step_optimizer(optimizer);
  if (!modules_settle()) return nullptr;
  learn_process_groups(g_python);
  g_python.Py_IncRef(g_python.none);
  return g_python.none;
}
GPUPROF_IDLE_DATA constinit PyMethodDef g_step_method{"gpuprof_step", on_optimizer_step,
                                                      kPyOneObject, nullptr};

// A module that is there but still being executed lacks what its later lines define.
bool is_complete(PyObject* module) {
  const PythonApi& py = g_python;
  const Owned spec(py, py.PyObject_GetAttrString(module, "__spec__"));
  const Owned busy(py,
                   spec.get() ? py.PyObject_GetAttrString(spec.get(), "_initializing") : nullptr);
  if (!busy.get()) {
    py.PyErr_Clear();
    return spec.get() != nullptr;
  }
  const int is_busy = py.PyObject_IsTrue(busy.get());
  if (is_busy < 0) py.PyErr_Clear();
  return is_busy == 0;
}

bool run_install(PyObject* module) {
  const PythonApi& py = g_python;
  const Owned names(py, py.PyDict_New());
  const Owned stepped(py, py.PyCFunction_NewEx(&g_step_method, nullptr, nullptr));
  PyObject* const sys = py.PyDict_GetItemString(py.PyImport_GetModuleDict(), "sys");
  const Owned getframe(py, sys ? py.PyObject_GetAttrString(sys, "_getframe") : nullptr);
  if (!names.get() || !stepped.get() || !getframe.get()) return false;
  if (py.PyDict_SetItemString(names.get(), "__builtins__", py.PyEval_GetBuiltins()) != 0 ||
      py.PyDict_SetItemString(names.get(), "module", module) != 0 ||
      py.PyDict_SetItemString(names.get(), "stepped", stepped.get()) != 0 ||
      py.PyDict_SetItemString(names.get(), "getframe", getframe.get()) != 0) {
    return false;
  }
  const Owned result(py, py.PyRun_String(kInstall, kPyFileInput, names.get(), names.get()));
  return result.get() != nullptr;
}

// A DataLoader's workers call it with their name.
void learn_names_of_workers(PyObject* modules) {
  const PythonApi& py = g_python;
  PyObject* const own = py.PyDict_GetItemString(modules, "torch._C");
  if (!own) return;
  const Owned name_thread(py, py.PyObject_GetAttrString(own, "_set_thread_name"));
  if (name_thread.get()) {
    session().names_workers.store(true, std::memory_order_relaxed);
  } else {
    py.PyErr_Clear();
  }
}

// With the GIL. Registers the hook once PyTorch's optimizers are complete. False: an exception is
// set, which a signal's handler raised; another look follows.
bool look_for_torch() {
  const PythonApi& py = g_python;
  if (g_installed.load(std::memory_order_relaxed) || py.PyErr_Occurred()) return true;
  PyObject* const modules = py.PyImport_GetModuleDict();
  PyObject* const module = modules ? py.PyDict_GetItemString(modules, kOptimizers) : nullptr;
  if (!module || module == py.none || !is_complete(module) || g_installed.exchange(true))
    return true;
  data_workers_possible();
  learn_names_of_workers(modules);
  if (run_install(module)) {
    session().tells_optimizers.store(true, std::memory_order_relaxed);
    return true;
  }
  if (!clear_own_error(py)) {
    g_installed = false;
    return false;
  }
  log_line(LogLevel::warn,
           "this PyTorch has no hook for the steps of its optimizers that gpuprof knows; set "
           "GPUPROF_STEP to what else marks a step");
  return true;
}

// Audit events come by the thousand; of imports only those after PyTorch's own began.
int on_audit(const char* event, PyObject* arguments, void*) {
  frames_look();
  if (data_worker_is_due()) data_worker_look(g_python);
  if (!forward_audit(event)) return -1;
  if (event[0] != 'i' || std::strcmp(event, "import") != 0 || !arguments) return 0;
  return look_for_torch() ? 0 : -1;
}

// With the GIL, in an interpreter that is initialized. Its entry comes from the allocator that
// frees it: before initialization that may be another one (PYTHONMALLOC, -X dev).
void add_audit_hook() {
  if (g_python.PyErr_Occurred() || g_audited.exchange(true)) return;
  if (g_python.PySys_AddAuditHook(on_audit, nullptr) != 0) {
    g_python.PyErr_Clear();  // another hook's objection
  }
}

void ask_main_thread();

// In an interpreter that runs already: torch may have been imported long ago.
int on_pending_call(void*) {
  if (!look_for_torch()) {
    g_pending = false;
    ask_main_thread();
    return -1;
  }
  if (!g_installed.load()) add_audit_hook();
  return 0;
}

void ask_main_thread() {
  if (g_pending.exchange(true)) return;
  if (g_python.Py_AddPendingCall(on_pending_call, nullptr) != 0)
    g_pending = false;  // queue is full
}

bool this_thread_has_the_gil() {
  void* const own = g_python.PyGILState_GetThisThreadState();
  return own && own == g_python.PyThreadState_GetUnchecked();
}

// The look-up is done once, by one thread. False also while another one is at it.
bool knows_initialized_python() {
  static std::atomic<uint32_t> looked{0};  // 1: someone is at it, 2: found
  uint32_t seen = 0;
  if (looked.compare_exchange_strong(seen, 1)) {
    g_state = find_python(g_python);
    // An absent one may still be loaded.
    looked.store(g_state == PythonState::absent ? 0 : 2, std::memory_order_release);
    seen = looked.load();
  }
  return seen == 2 && g_state == PythonState::known && g_python.Py_IsInitialized();
}

}  // namespace

void python_watch() {
  if (!wants_injection() || g_audited.load(std::memory_order_relaxed)) return;
  if (knows_initialized_python()) ask_main_thread();
}

void python_opens(const char* file) {
  const ErrnoGuard keep_errno;
  if (g_audited.load(std::memory_order_relaxed) || !std::strstr(file, "torch")) return;
  if (!wants_injection() || !knows_initialized_python()) return;
  if (this_thread_has_the_gil()) {
    add_audit_hook();
  } else {
    ask_main_thread();
  }
}

bool python_is_known() { return g_state == PythonState::known; }

void python_session_begins() {
  python_watch();
  if (g_state == PythonState::known) modules_session_begins(g_python);
  if (g_state == PythonState::known) forward_session_begins(g_python);
  if (g_state == PythonState::known) frames_session_begins(g_python);
  if (g_state != PythonState::unknown || !session().tracker.wants(StepSource::optimizer)) return;
  log_line(LogLevel::warn,
           "this Python has no audit hooks, or lacks other functions that CPython 3.8 and later "
           "have: its stacks are not sampled, and steps of PyTorch's optimizers are not seen; mark "
           "steps with NVTX ranges or gpuprof_step(), or set GPUPROF_STEP");
}

}  // namespace gpuprof
