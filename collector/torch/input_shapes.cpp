// SPDX-License-Identifier: Apache-2.0
#include "collector/torch/input_shapes.h"

#include <dlfcn.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <new>

#include "collector/base/libraries.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/record/recorder.h"
#include "collector/torch/guarded_call.h"
#include "formats/core/text.h"

namespace gpuprof {
namespace {

void (*g_delete)(void*) = nullptr;  // the program's operator delete

// std::vector of the program's C++ library: three pointers. With a destructor of its own it is
// returned through memory, as theirs is.
template <typename T>
struct Vector {
  T* first = nullptr;
  T* last = nullptr;
  T* end_of_storage = nullptr;

  Vector() = default;
  Vector(const Vector&) = delete;
  ~Vector() {
    for (T* each = first; each != last; ++each) each->~T();
    if (first) g_delete(first);
  }
};

// std::string of libstdc++'s ABI since GCC 5.
struct String {
  char* text;
  size_t length;
  union {
    char local[16];
    size_t capacity;
  };
  ~String() {
    if (text != local) g_delete(text);
  }
};
using Sizes = Vector<int64_t>;

// What a function of PyTorch's gives, unless it throws. That of sizes does for tensors that have
// none in numbers: nested ones, and those whose sizes torch.compile keeps as symbols.
template <typename T>
class Answer {
 public:
  template <typename Ask>
  explicit Answer(const Ask& ask) {
    struct Asked {
      const Ask& ask;
      Vector<T>& out;
    } asked{ask, value_};
    given_ = guarded_call(
        [](void* memory) {
          Asked& the = *static_cast<Asked*>(memory);
          new (&the.out) Vector<T>(the.ask());
        },
        &asked);
  }
  Answer(const Answer&) = delete;
  ~Answer() {
    if (given_) value_.~Vector<T>();
  }
  bool given() const { return given_; }
  const Vector<T>& operator*() const { return value_; }

 private:
  union {
    Vector<T> value_;
  };
  bool given_;
};

struct Functions {
  Vector<Sizes> (*sizes_of)(const RecordFunction&);  // up to 2.0
  Vector<Sizes> (*sizes_in)(const RecordFunction&,
                            bool lists);  // from 2.1: also of lists' elements
  Vector<String> (*types)(const RecordFunction&);
};
constinit Functions g_functions{};

enum class State : uint8_t { unknown, known, absent };
std::atomic<State> g_state{State::unknown};

template <typename Function>
void find(void* library, const char* name, Function& out) {
  void* const symbol = real_symbol(library, name);
  std::memcpy(&out, &symbol, sizeof symbol);
}

State look() {
  void* const library = torch_library();
  if (!library) return State::unknown;
  Functions& f = g_functions;
  find(library, "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionE", f.sizes_of);
  find(library, "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb", f.sizes_in);
  find(library, "_ZN5torch8profiler4impl10inputTypesB5cxx11ERKN2at14RecordFunctionE", f.types);
  // The one that its operator new goes with: the program may bring its own.
  void* free = program_symbol("_ZdlPv");
  if (!free) free = real_symbol(library, "_ZdlPv");
  std::memcpy(&g_delete, &free, sizeof free);
  const bool guarded = guard_is_usable(library);
  ::dlerror();
  return guarded && g_delete && (f.sizes_of || f.sizes_in) ? State::known : State::absent;
}

// A JSON array, item by item.
class Array {
 public:
  void open() { separate(), put("["), first_ = true; }
  void close() { put("]"), first_ = false; }
  void number(int64_t value) {
    separate();
    char digits[24];
    const auto result = std::to_chars(digits, digits + sizeof digits, value);
    put({digits, static_cast<size_t>(result.ptr - digits)});
  }
  void text(std::string_view value) { separate(), put("\""), put(value), put("\""); }
  StringId intern() const { return fits_ ? intern_text({text_, length_}) : StringId{0}; }

 private:
  void separate() {
    if (!first_) put(",");
    first_ = false;
  }
  void put(std::string_view part) {
    fits_ = fits_ && part.size() <= sizeof text_ - length_;
    if (!fits_) return;
    std::memcpy(text_ + length_, part.data(), part.size());
    length_ += part.size();
  }

  char text_[4096];
  size_t length_ = 0;
  bool first_ = true, fits_ = true;
};

void add(const Sizes& sizes, Array& array) {
  array.open();
  for (const int64_t* size = sizes.first; size != sizes.last; ++size) array.number(*size);
  array.close();
}

// Where a list of tensors stands among an operator's inputs, and how many it has.
struct List {
  ptrdiff_t at = -1, tensors = 1;  // at -1: there is none
};

StringId intern_sizes(const Vector<Sizes>& all, List list) {
  Array array;
  array.open();
  const Sizes* sizes = all.first;
  for (ptrdiff_t i = 0; sizes != all.last || i == list.at; ++i) {
    if (i != list.at) {
      add(*sizes++, array);
      continue;
    }
    array.open();
    for (ptrdiff_t k = 0; k < list.tensors; ++k) add(*sizes++, array);
    array.close();
  }
  array.close();
  return array.intern();
}

bool is_list(const String& type) {
  const std::string_view text{type.text, type.length};
  return text == "GenericList" || text == "TensorList";
}

// `flat` has an entry for each tensor of a list, and one, without sizes, for a list of something
// else. Of several lists it does not say where one ends and the next begins.
List list_in(const Vector<Sizes>& flat, const Vector<String>& types) {
  List out;
  for (const String* type = types.first; type != types.last; ++type) {
    if (is_list(*type)) out.at = type - types.first;
  }
  const ptrdiff_t entries = flat.last - flat.first, inputs = types.last - types.first;
  if (out.at < 0) return out;
  out.tensors = entries - inputs + 1;
  const Sizes* const first = flat.first + out.at;
  const bool other = out.tensors == 1 && first->first == first->last;
  return other || out.tensors < 1 ? List{} : out;
}

ptrdiff_t lists_of(const Vector<String>& types) {
  ptrdiff_t count = 0;
  for (const String* type = types.first; type != types.last; ++type) count += is_list(*type);
  return count;
}

StringId intern_types(const Vector<String>& types) {
  Array array;
  array.open();
  for (const String* type = types.first; type != types.last; ++type) {
    array.text({type->text, type->length});
  }
  array.close();
  return array.intern();
}

}  // namespace

bool input_shapes_are_known() {
  const ErrnoGuard keep_errno;
  State state = g_state.load(std::memory_order_acquire);
  if (state != State::unknown) return state == State::known;
  state = look();
  if (state != State::unknown) g_state.store(state, std::memory_order_release);
  if (state == State::absent) {
    log_line(LogLevel::warn,
             "shapes of operators' inputs are not recorded: this PyTorch does not have the "
             "functions for them that gpuprof knows (1.13 and later have)");
  }
  return state == State::known;
}

InputShapes input_shapes(const RecordFunction& function) {
  const Functions& f = g_functions;
  const Answer<String> types([&] { return f.types ? f.types(function) : Vector<String>(); });
  if (!types.given()) return {};
  const StringId of_types = f.types ? intern_types(*types) : StringId{0};
  const bool one_list = f.sizes_in && lists_of(*types) == 1;
  const Answer<Sizes> sizes(
      [&] { return f.sizes_in ? f.sizes_in(function, one_list) : f.sizes_of(function); });
  if (!sizes.given()) return {StringId{0}, of_types};
  return {intern_sizes(*sizes, one_list ? list_in(*sizes, *types) : List{}), of_types};
}

}  // namespace gpuprof
