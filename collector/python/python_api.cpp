// SPDX-License-Identifier: Apache-2.0
#include "collector/python/python_api.h"

#include <dlfcn.h>

#include <cstring>

#include "collector/base/libraries.h"

namespace gpuprof {
namespace {

// True when found.
template <typename Function>
bool find(const char* name, Function& out) {
  void* const symbol = program_symbol(name);
  std::memcpy(&out, &symbol, sizeof symbol);
  return symbol != nullptr;
}

// The public name came with 3.13.
template <typename Function>
bool find_either(const char* name, const char* before, Function& out) {
  if (find(name, out)) return true;
  ::dlerror();
  return find(before, out);
}

}  // namespace

bool clear_own_error(const PythonApi& python) {
  if (python.PyErr_Occurred()) {
    if (!python.PyErr_ExceptionMatches(*python.exception)) return false;
    python.PyErr_Clear();
  }
  return true;
}

PythonState find_python(PythonApi& api) {
  // Most processes are no Python: not by dlsym, which allocates where it finds nothing.
  if (!exported_symbol("libpython", "Py_IsInitialized")) return PythonState::absent;
  bool all = find("Py_IsInitialized", api.Py_IsInitialized);
#define GPUPROF_FIND(name) all = all && find(#name, api.name)
  GPUPROF_FIND(PySys_AddAuditHook);
  GPUPROF_FIND(Py_GetVersion);
  GPUPROF_FIND(Py_AddPendingCall);
  GPUPROF_FIND(PyImport_GetModuleDict);
  GPUPROF_FIND(PySys_GetObject);
  GPUPROF_FIND(PyDict_GetItemString);
  GPUPROF_FIND(PyDict_SetItemString);
  GPUPROF_FIND(PyDict_New);
  GPUPROF_FIND(PyEval_GetBuiltins);
  GPUPROF_FIND(PyObject_GetAttrString);
  GPUPROF_FIND(PyObject_IsTrue);
  GPUPROF_FIND(PyTuple_GetItem);
  GPUPROF_FIND(PyUnicode_AsUTF8);
  GPUPROF_FIND(PyLong_AsLong);
  GPUPROF_FIND(PyErr_Occurred);
  GPUPROF_FIND(PyErr_Clear);
  GPUPROF_FIND(PyErr_ExceptionMatches);
  GPUPROF_FIND(PyRun_String);
  GPUPROF_FIND(PyCFunction_NewEx);
  GPUPROF_FIND(PyObject_CallFunctionObjArgs);
  GPUPROF_FIND(PyDict_Next);
  GPUPROF_FIND(PyWeakref_NewRef);
  GPUPROF_FIND(PyWeakref_GetObject);
  GPUPROF_FIND(Py_IncRef);
  GPUPROF_FIND(Py_DecRef);
  GPUPROF_FIND(PyEval_GetFrame);
  GPUPROF_FIND(PyFrame_GetLineNumber);
  GPUPROF_FIND(PyInterpreterState_Main);
  GPUPROF_FIND(PyThreadState_Get);
  GPUPROF_FIND(PyGILState_GetThisThreadState);
#undef GPUPROF_FIND
  all = all && find("_Py_NoneStruct", api.none) && find("PyExc_Exception", api.exception);
  all = all && find_either("Py_IsFinalizing", "_Py_IsFinalizing", api.Py_IsFinalizing) &&
        find_either("PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet",
                    api.PyThreadState_GetUnchecked);
  if (all && !(find("PyFrame_GetCode", api.PyFrame_GetCode) &&
               find("PyFrame_GetBack", api.PyFrame_GetBack))) {
    ::dlerror();
  }
  if (all) return PythonState::known;
  ::dlerror();  // a look-up that failed leaves a message for the program's next one
  return PythonState::unknown;
}

}  // namespace gpuprof
