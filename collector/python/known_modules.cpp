// SPDX-License-Identifier: Apache-2.0
#include "collector/python/known_modules.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <string_view>

#include "collector/base/fork.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

constexpr uint32_t kSlots = 65536, kMost = kSlots / 2;

// A module may die and another one come to its address: the weak reference tells.
struct Entry {
  PyObject* object;
  PyObject* reference;
  const void* root;  // the module that its path begins with; may be gone
  StringId name;
  uint32_t number;  // 0: it was not called yet, and `name` means nothing
  uint32_t walk;    // the last one that met it
  char path[224];
};

// A module that is yet to be named, with references.
struct Waiting {
  PyObject* object;
  PyObject* key;    // its name in the one around
  uint32_t around;  // slot of that
};
constexpr uint32_t kMostWaiting = 16384;
constexpr size_t kTableBytes = kSlots * sizeof(Entry) + kMostWaiting * sizeof(Waiting);

// All under the GIL.
Entry* g_entries = nullptr;
Waiting* g_waiting = nullptr;
uint32_t g_count = 0, g_numbers = 0, g_walks = 0;
// Naming calls into Python, which may run any of the program's code (a finalizer, a property) and
// let other threads run. They find that it is under way, and the table stays as it is.
pthread_t g_naming = 0;  // the thread that names; 0: none
bool g_forget_later = false;

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
  void* const memory =
      ::mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  g_entries = static_cast<Entry*>(memory);
  g_waiting = reinterpret_cast<Waiting*>(g_entries + kSlots);
  return true;
}

// The class's name; the text is the interpreter's while `type` and `name` live.
class ClassName {
 public:
  ClassName(const PythonApi& py, PyObject* module)
      : type_(py, py.PyObject_GetAttrString(module, "__class__")),
        name_(py, type_.get() ? py.PyObject_GetAttrString(type_.get(), "__name__") : nullptr) {
    const char* const text = name_.get() ? py.PyUnicode_AsUTF8(name_.get()) : nullptr;
    if (text) text_ = text;
    if (!text) py.PyErr_Clear();
  }
  std::string_view text() const { return text_; }

 private:
  Owned type_, name_;
  std::string_view text_ = "?";
};

// Takes a slot for the module, or the one that it has. Null: there is no room.
Entry* take(const PythonApi& py, PyObject* module, const void* root) {
  Entry* const entry = slot_of(module);
  if (!entry->object && g_count == kMost) return nullptr;
  if (!entry->object) ++g_count;
  if (!entry->object || !is_alive(py, *entry)) {
    if (entry->reference) py.Py_DecRef(entry->reference);
    entry->reference = py.PyWeakref_NewRef(module, nullptr);
    if (!entry->reference) py.PyErr_Clear();
  }
  entry->object = module;
  entry->root = root;
  entry->number = 0;
  return entry;
}

// Names all modules below one as PyTorch's named_modules() does: depth first, each where it is met
// first. Containers (ModuleList, ModuleDict) and wrappers are not called, or call what they hold.
class Walk {
 public:
  Walk(const PythonApi& py, const void* root) : py_(py), root_(root), walk_(++g_walks) {}
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  void below(const Entry& top) {
    add_children(top);
    while (count_ > 0) {
      const Waiting next = g_waiting[--count_];
      Entry* const entry = name(next);
      if (entry) add_children(*entry);
      py_.Py_DecRef(next.object);
      py_.Py_DecRef(next.key);
    }
    py_.PyErr_Clear();
  }

 private:
  // Null: this walk has been there, or there is no room.
  Entry* name(const Waiting& next) {
    Entry* const known = slot_of(next.object);
    if (known->object && known->root == root_ && is_alive(py_, *known)) {
      if (known->walk == walk_ || known->object == root_) return nullptr;
      known->walk = walk_;
      return known;
    }
    Entry* const entry = take(py_, next.object, root_);
    if (!entry) return nullptr;
    entry->walk = walk_;
    const char* const key = py_.PyUnicode_AsUTF8(next.key);
    TextBuilder out(entry->path, sizeof entry->path);
    out.add(g_entries[next.around].path).add(".").add(key ? key : "?");
    return entry;
  }

  // The last one waiting is the next: the first child.
  void add_children(const Entry& around) {
    const Owned children(py_, py_.PyObject_GetAttrString(around.object, "_modules"));
    const uint32_t begin = count_;
    ptrdiff_t at = 0;
    PyObject *key = nullptr, *child = nullptr;
    while (children.get() && count_ < kMostWaiting &&
           py_.PyDict_Next(children.get(), &at, &key, &child)) {
      if (child == py_.none) continue;
      py_.Py_IncRef(child);
      py_.Py_IncRef(key);
      g_waiting[count_++] = {child, key, static_cast<uint32_t>(&around - g_entries)};
    }
    std::reverse(g_waiting + begin, g_waiting + count_);
  }

  const PythonApi& py_;
  const void* const root_;
  const uint32_t walk_;
  uint32_t count_ = 0;
};

// The first that is called of a model is its outermost module, and gives all others their paths.
// One that was put into the model since then is looked for below the one around it.
Entry* find_or_name(const PythonApi& py, PyObject* module, const void* around) {
  Entry* const parent = around ? slot_of(around) : nullptr;
  if (parent && parent->object && is_alive(py, *parent)) {
    const void* const root = parent->root;
    Walk(py, root).below(*parent);
    Entry* const entry = slot_of(module);
    if (entry->object && entry->root == root && is_alive(py, *entry)) return entry;
  }
  Entry* const entry = take(py, module, module);
  if (!entry) return nullptr;
  TextBuilder(entry->path, sizeof entry->path).add(ClassName(py, module).text());
  Walk(py, module).below(*entry);
  return entry;
}

StringId name_of(const PythonApi& py, PyObject* module, const char* path, bool inside) {
  char full[360];
  TextBuilder line(full, sizeof full);
  const ClassName type(py, module);
  line.add("nn.Module: ").add(path ? std::string_view(path) : type.text());
  if (inside) line.add(" (").add(type.text()).add(")");
  return intern_string(full);
}

void forget_all(const PythonApi& py) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    if (g_entries[i].reference) py.Py_DecRef(g_entries[i].reference);
    g_entries[i] = Entry{};
  }
  g_count = 0;
}

class NamingScope {
 public:
  explicit NamingScope(const PythonApi& py) : py_(py) { g_naming = ::pthread_self(); }
  ~NamingScope() {
    g_naming = 0;
    if (g_forget_later) forget_all(py_);
    g_forget_later = false;
  }
  NamingScope(const NamingScope&) = delete;
  NamingScope& operator=(const NamingScope&) = delete;

 private:
  const PythonApi& py_;
};

// Their names are in the parent's ring. The references stay: the child may not have the GIL.
void forget_parents_modules() {
  if (g_naming && ::pthread_equal(g_naming, ::pthread_self())) {  // Python code forks meanwhile
    g_forget_later = true;
    return;
  }
  g_naming = 0;
  g_forget_later = false;
  if (g_entries) ::munmap(g_entries, kTableBytes);
  g_entries = nullptr;
  g_count = 0;
  g_waiting = nullptr;
  g_walks = 0;
}
GPUPROF_FORGET_IN_CHILD(forget_parents_modules);

}  // namespace

KnownModule know_module(const PythonApi& py, PyObject* module, const void* around) {
  const bool has_table = make_table();
  Entry* entry = has_table ? slot_of(module) : nullptr;
  const bool known = entry && entry->object && is_alive(py, *entry);
  if (known && entry->number > 0) return {entry->name, entry->number};
  const bool full = !known && g_count == kMost;
  if (!has_table || full || g_naming) return {name_of(py, module, nullptr, false), 0};
  const NamingScope naming(py);
  if (!known) entry = find_or_name(py, module, around);
  if (!entry) return {name_of(py, module, nullptr, false), 0};
  entry->name = name_of(py, module, entry->path, entry->root != module);
  entry->number = ++g_numbers;
  return {entry->name, entry->number};
}

void forget_modules(const PythonApi& py) {
  if (g_naming) {
    g_forget_later = true;
  } else if (g_entries) {
    forget_all(py);
  }
}

}  // namespace gpuprof
