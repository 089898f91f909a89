// SPDX-License-Identifier: Apache-2.0
// Stands for libtorch_cpu.so where a test needs many operators and no PyTorch: the functions of
// at::RecordFunction by which gpuprof observes operators, as PyTorch 2.0 exports them. An object
// keeps the observers that its begin was told to: its end is told to the same ones, also if they
// are removed meanwhile.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace at {

enum class RecordScope : uint8_t { FUNCTION, BACKWARD_FUNCTION, USER_SCOPE = 7 };

class RecordFunction;
// std::unique_ptr<ObserverContext>, which is returned through memory.
struct Context {
  void* pointer = nullptr;
  ~Context() {}
};

struct RecordFunctionCallback {
  Context (*begin)(const RecordFunction&);
  void (*end)(const RecordFunction&, void*);
  double probability;
  bool scopes[10];
  bool needs_inputs, needs_outputs, needs_ids;
};

class RecordFunction {
 public:
  explicit RecordFunction(RecordScope scope);
  virtual ~RecordFunction();
  void before(const char* name, int64_t sequence);
  const char* name() const;

 private:
  const char* name_ = "";
  int64_t sequence_ = -1;
  RecordScope scope_;
  size_t count_ = 0;
  void (*ends_[8])(const RecordFunction&, void*) = {};
};

uint64_t addGlobalCallback(RecordFunctionCallback callback);
void removeCallback(uint64_t handle);

namespace {

struct Observer {
  uint64_t handle;
  RecordFunctionCallback callback;
};
std::mutex g_lock;
std::vector<Observer> g_observers;
std::atomic<uint64_t> g_version{1};
uint64_t g_last_handle = 0;

// Of this thread; as new as the version says.
const std::vector<Observer>& observers() {
  static thread_local std::vector<Observer> known;
  static thread_local uint64_t version = 0;
  if (version != g_version.load(std::memory_order_acquire)) {
    const std::lock_guard guard(g_lock);
    known = g_observers;
    version = g_version.load(std::memory_order_relaxed);
  }
  return known;
}

}  // namespace

uint64_t addGlobalCallback(RecordFunctionCallback callback) {
  const std::lock_guard guard(g_lock);
  g_observers.push_back({++g_last_handle, callback});
  g_version.fetch_add(1, std::memory_order_release);
  return g_last_handle;
}

void removeCallback(uint64_t handle) {
  const std::lock_guard guard(g_lock);
  std::erase_if(g_observers, [&](const Observer& each) { return each.handle == handle; });
  g_version.fetch_add(1, std::memory_order_release);
}

RecordFunction::RecordFunction(RecordScope scope) : scope_(scope) {}

RecordFunction::~RecordFunction() {
  for (size_t i = 0; i < count_; ++i) ends_[i](*this, nullptr);
}

void RecordFunction::before(const char* name, int64_t sequence) {
  name_ = name;
  sequence_ = sequence;
  for (const Observer& each : observers()) {
    if (!each.callback.scopes[static_cast<size_t>(scope_)] || count_ == std::size(ends_)) continue;
    ends_[count_++] = each.callback.end;
    (void)each.callback.begin(*this);
  }
}

const char* RecordFunction::name() const { return name_; }

}  // namespace at

// `count` operators, one after the other, within one more.
extern "C" void torch_like_operators(int count) {
  at::RecordFunction around(at::RecordScope::FUNCTION);
  around.before("aten::around", 1);
  for (int i = 0; i < count; ++i) {
    at::RecordFunction each(at::RecordScope::FUNCTION);
    each.before("aten::add", 2);
  }
}
