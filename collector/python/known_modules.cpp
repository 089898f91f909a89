// SPDX-License-Identifier: Apache-2.0
#include "collector/python/known_modules.h"

#include <sys/mman.h>

#include <cstring>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr uint32_t kSlots = 8192, kMost = kSlots / 2;

// A module may die and another one come to its address: the weak reference tells.
struct Entry {
  PyObject* object;
  PyObject* reference;
  StringId name;
  uint32_t number;
  char path[104];
};

// All under the GIL.
Entry* g_entries = nullptr;
uint32_t g_count = 0, g_numbers = 0;

Entry* slot_of(const void* object) {
  const auto address = reinterpret_cast<uintptr_t>(object);
  uint32_t at = static_cast<uint32_t>((address >> 4) * 0x9e3779b97f4a7c15ull >> 40) % kSlots;
  while (g_entries[at].object && g_entries[at].object != object) at = (at + 1) % kSlots;
  return &g_entries[at];
}

bool is_alive(const PythonApi& py, const Entry& entry) {
  return entry.reference && py.PyWeakref_GetObject(entry.reference) == entry.object;
}

bool make_table() {
  if (g_entries) return true;
  const ErrnoGuard keep_errno;
  void* const memory = ::mmap(nullptr, kSlots * sizeof(Entry), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_entries = static_cast<Entry*>(memory);
  return true;
}

// The name of `module` among the children of `parent`; empty where it is none of them. The text is
// the interpreter's.
std::string_view name_in(const PythonApi& py, PyObject* parent, const PyObject* module) {
  const Owned children(py, py.PyObject_GetAttrString(parent, "_modules"));
  ptrdiff_t at = 0;
  PyObject *key = nullptr, *child = nullptr;
  while (children.get() && py.PyDict_Next(children.get(), &at, &key, &child)) {
    if (child != module) continue;
    const char* const name = py.PyUnicode_AsUTF8(key);
    if (name) return name;
  }
  py.PyErr_Clear();
  return {};
}

StringId describe(const PythonApi& py, PyObject* module, const void* around, char* path,
                  size_t size) {
  const Owned type(py, py.PyObject_GetAttrString(module, "__class__"));
  const Owned name(py, type.get() ? py.PyObject_GetAttrString(type.get(), "__name__") : nullptr);
  const char* text = name.get() ? py.PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text) {
    py.PyErr_Clear();
    text = "?";
  }
  Entry* const parent = around ? slot_of(around) : nullptr;
  std::string_view inside;
  if (parent && parent->object && is_alive(py, *parent))
    inside = name_in(py, parent->object, module);
  TextBuilder out(path, size);
  if (!inside.empty()) out.add(parent->path).add(".");
  out.add(inside.empty() ? std::string_view(text) : inside);
  char full[320];
  TextBuilder line(full, sizeof full);
  line.add("nn.Module: ").add(path);
  if (!inside.empty()) line.add(" (").add(text).add(")");
  return intern_string(full);
}

// Their names are in the parent's ring. The references stay: the child may not have the GIL.
void forget_parents_modules() {
  if (g_entries) ::munmap(g_entries, kSlots * sizeof(Entry));
  g_entries = nullptr;
  g_count = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_parents_modules);

}  // namespace

KnownModule know_module(const PythonApi& py, PyObject* module, const void* around) {
  char path[sizeof(Entry::path)];
  if (!make_table()) return {describe(py, module, nullptr, path, sizeof path), 0};
  Entry* const entry = slot_of(module);
  if (entry->object && is_alive(py, *entry)) return {entry->name, entry->number};
  if (!entry->object && g_count == kMost) {
    return {describe(py, module, around, path, sizeof path), 0};
  }
  const StringId name = describe(py, module, around, path, sizeof path);
  if (!entry->object) ++g_count;
  if (entry->reference) py.Py_DecRef(entry->reference);
  entry->object = module;
  entry->reference = py.PyWeakref_NewRef(module, nullptr);
  if (!entry->reference) py.PyErr_Clear();
  entry->name = name;
  entry->number = ++g_numbers;
  std::memcpy(entry->path, path, sizeof path);
  return {entry->name, entry->number};
}

void forget_modules(const PythonApi& py) {
  if (!g_entries) return;
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (g_entries[i].reference) py.Py_DecRef(g_entries[i].reference);
    g_entries[i] = Entry{};
  }
  g_count = 0;
}

}  // namespace gpuprof
