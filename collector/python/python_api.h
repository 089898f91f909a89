// SPDX-License-Identifier: Apache-2.0
// The functions of CPython's public interface that we call, looked up in the process: no header of
// Python's, no link to it. Those used here are the same in every release since 3.8, the first with
// audit hooks.
#pragma once

#include <cstddef>

namespace gpuprof {

struct PyObject;  // opaque
using PyCFunction = PyObject* (*)(PyObject* self, PyObject* argument);

// As CPython's own: the interpreter keeps a pointer to it.
struct PyMethodDef {
  const char* name;
  PyCFunction function;
  int flags;
  const char* doc;
};
inline constexpr int kPyOneObject = 8;    // METH_O
inline constexpr int kPyFileInput = 257;  // Py_file_input

using PyAuditHook = int (*)(const char* event, PyObject* arguments, void* data);

struct PythonApi {
  int (*PySys_AddAuditHook)(PyAuditHook hook, void* data);
  int (*Py_IsInitialized)();
  const char* (*Py_GetVersion)();
  int (*Py_AddPendingCall)(int (*call)(void*), void* data);
  PyObject* (*PyImport_GetModuleDict)();
  PyObject* (*PySys_GetObject)(const char* name);  // borrowed
  PyObject* (*PyDict_GetItemString)(PyObject* dict, const char* key);
  int (*PyDict_SetItemString)(PyObject* dict, const char* key, PyObject* value);
  PyObject* (*PyDict_New)();
  PyObject* (*PyEval_GetBuiltins)();
  PyObject* (*PyObject_GetAttrString)(PyObject* object, const char* name);
  int (*PyObject_IsTrue)(PyObject* object);
  PyObject* (*PyTuple_GetItem)(PyObject* tuple, ptrdiff_t index);
  const char* (*PyUnicode_AsUTF8)(PyObject* text);
  long (*PyLong_AsLong)(PyObject* number);
  PyObject* (*PyErr_Occurred)();
  void (*PyErr_Clear)();
  int (*PyErr_ExceptionMatches)(PyObject* type);
  PyObject** exception;  // PyExc_Exception
  PyObject* (*PyRun_String)(const char* source, int start, PyObject* globals, PyObject* locals);
  PyObject* (*PyCFunction_NewEx)(PyMethodDef* method, PyObject* self, PyObject* module);
  PyObject* (*PyObject_CallFunctionObjArgs)(PyObject* callable, ...);
  void (*Py_IncRef)(PyObject* object);
  void (*Py_DecRef)(PyObject* object);
  int (*PyDict_Next)(PyObject* dict, ptrdiff_t* place, PyObject** key, PyObject** value);
  PyObject* (*PyWeakref_NewRef)(PyObject* object, PyObject* callback);
  PyObject* (*PyWeakref_GetObject)(PyObject* reference);  // borrowed
  PyObject* (*PyEval_GetFrame)();                         // borrowed
  int (*PyFrame_GetLineNumber)(PyObject* frame);
  void* (*PyInterpreterState_Main)();
  void* (*PyThreadState_Get)();
  void* (*PyThreadState_GetUnchecked)();     // _PyThreadState_UncheckedGet before 3.13; may be null
  void* (*PyGILState_GetThisThreadState)();  // null in a thread that has none
  PyObject* none;                            // _Py_NoneStruct
  int (*Py_IsFinalizing)();                  // _Py_IsFinalizing before 3.13
  // From 3.9 on, else null.
  PyObject* (*PyFrame_GetCode)(PyObject* frame);
  PyObject* (*PyFrame_GetBack)(PyObject* frame);
};

// Takes over a new reference for a scope. With the GIL.
class Owned {
 public:
  Owned(const PythonApi& python, PyObject* object) : python_(python), object_(object) {}
  ~Owned() { reset(nullptr); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  PyObject* get() const { return object_; }
  void reset(PyObject* object) {
    if (object_) python_.Py_DecRef(object_);
    object_ = object;
  }

 private:
  const PythonApi& python_;
  PyObject* object_;
};

// With the GIL, after code of ours failed: false if the exception is not for us but the program's,
// as the KeyboardInterrupt of a signal that arrived meanwhile. Any other is cleared.
bool clear_own_error(const PythonApi& python);

// Whether this process is (or has loaded) a Python interpreter, and all of the functions were
// found. No call of Python's; allowed before it is initialized.
enum class PythonState { absent, known, unknown };
PythonState find_python(PythonApi& api);

}  // namespace gpuprof
