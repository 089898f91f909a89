// SPDX-License-Identifier: Apache-2.0
#include "collector/python/known_groups.h"

#include <cstdint>

#include "collector/record/communicators.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr const char* kModule = "torch.distributed.distributed_c10d";

// Of the dict {rank in the job: rank in the group}. The stride stays 0 where its ranks are not
// first, first + stride, ...
void take_ranks(const PythonApi& py, PyObject* ranks, GroupNames& out) {
  ptrdiff_t at = 0;
  PyObject *key = nullptr, *value = nullptr;
  long first = -1, second = -1;
  uint32_t size = 0;
  while (py.PyDict_Next(ranks, &at, &key, &value)) {
    const long place = py.PyLong_AsLong(value);
    if (place == 0) first = py.PyLong_AsLong(key);
    if (place == 1) second = py.PyLong_AsLong(key);
    ++size;
  }
  const long stride = size == 1 ? 1 : second - first;
  bool regular = first >= 0 && stride > 0;
  at = 0;
  while (regular && py.PyDict_Next(ranks, &at, &key, &value)) {
    regular = py.PyLong_AsLong(key) == first + stride * py.PyLong_AsLong(value);
  }
  if (py.PyErr_Occurred()) {  // an entry is no number
    py.PyErr_Clear();
    regular = false;
  }
  out.size = size;
  out.first = regular ? static_cast<uint32_t>(first) : 0;
  out.stride = regular ? static_cast<uint32_t>(stride) : 0;
}

PyObject* entry_of(const PythonApi& py, PyObject* dict, PyObject* wanted) {
  ptrdiff_t at = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (py.PyDict_Next(dict, &at, &key, &value)) {
    if (key == wanted) return value;
  }
  return nullptr;
}

bool copy(const PythonApi& py, PyObject* text, char (&out)[GroupNames::kTextBytes]) {
  const char* const utf8 = text ? py.PyUnicode_AsUTF8(text) : nullptr;
  if (!utf8) py.PyErr_Clear();
  copy_text(utf8 ? utf8 : "", out, sizeof out);
  return utf8 != nullptr;
}

}  // namespace

void learn_process_groups(const PythonApi& py) {
  if (!communicators_lack_groups() || py.PyErr_Occurred()) return;
  PyObject* const modules = py.PyImport_GetModuleDict();
  PyObject* const module = modules ? py.PyDict_GetItemString(modules, kModule) : nullptr;
  if (!module || module == py.none) return;
  const Owned names(py, py.PyObject_GetAttrString(module, "_pg_names"));
  const Owned ranks(py, py.PyObject_GetAttrString(module, "_pg_group_ranks"));
  if (!names.get() || !ranks.get()) return py.PyErr_Clear();
  ptrdiff_t at = 0;
  PyObject *group = nullptr, *name = nullptr;
  while (py.PyDict_Next(names.get(), &at, &group, &name)) {
    // Looking at a group may run code that takes it out.
    py.Py_IncRef(group);
    py.Py_IncRef(name);
    const Owned kept_group(py, group), kept_name(py, name);
    GroupNames out{};
    const Owned description(py, py.PyObject_GetAttrString(group, "group_desc"));
    PyObject* const places = entry_of(py, ranks.get(), group);
    if (!copy(py, name, out.name) || !places) continue;
    copy(py, description.get(), out.description);
    take_ranks(py, places, out);
    name_groups_called(out);
  }
  py.PyErr_Clear();
}

}  // namespace gpuprof
