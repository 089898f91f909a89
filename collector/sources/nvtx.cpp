// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/nvtx.h"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "collector/base/fork.h"
#include "collector/base/host.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/sources/nvtx_names.h"
#include "collector/sources/nvtx_text.h"
#include "formats/core/text.h"

namespace gpuprof {

// Open push/pop ranges of one thread. A range that was pushed while nothing was recorded is kept
// out, unless others are open: then it must be there for its pop to find it.
struct NvtxRange {
  uint64_t begin;
  StringId message, domain;
  uint32_t category, color;
  uint64_t payload;
  uint32_t payload_type;
  uint64_t domain_handle;
  bool recorded;
};
struct NvtxThread {
  static constexpr uint32_t kDepth = 126;
  uint32_t depth;
  uint32_t beyond;   // pushes past kDepth, still open
  uint32_t windows;  // that had begun when this was last used
  NvtxRange open[kDepth];
  NvtxCall call;
};

const size_t kNvtxThreadBytes = sizeof(NvtxThread);

namespace {

// Start/end ranges may end on another thread.
struct StartedRange {
  nvtxRangeId_t id;  // 0: free
  uint32_t thread;   // that started it
  NvtxRange range;
};
constexpr size_t kStarted = 1024, kProbes = 64;
StartedRange g_started_ranges[kStarted];
Mutex g_started_lock;
std::atomic<uint32_t> g_started{0};  // slots in use
std::atomic<uint64_t> g_next_range{1};
std::atomic<uint32_t> g_windows{0};  // that have begun

NvtxThread* thread_ranges() {
  if (t_state.nvtx) return t_state.nvtx;
  const ErrnoGuard keep_errno;
  void* memory = ::mmap(nullptr, sizeof(NvtxThread), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_state.nvtx = static_cast<NvtxThread*>(memory);
  release_at_thread_exit();
  return t_state.nvtx;
}

// What began before the window is no part of it. It may never end: an exception has passed its pop.
void leave_older(NvtxThread& thread) {
  const uint32_t windows = g_windows.load(std::memory_order_relaxed);
  if (thread.windows == windows) return;
  thread.depth = thread.beyond = 0;
  thread.windows = windows;
}

// By its number, or by the name that the program gave it, to NVTX or to the operating system.
bool is_this_thread(const char* wanted) {
  const ErrnoGuard keep_errno;
  const uint32_t thread = current_tid();
  uint64_t number = 0;
  if (parse_whole(wanted, number) && number == thread) return true;
  char name[16] = "";
  ::prctl(PR_GET_NAME, name);
  return std::string_view(name) == wanted || nvtx_thread_name(thread) == wanted;
}

// The domain whose ranges are calls: its handle, 0 before a module makes it, and who takes them.
std::atomic<uint64_t> g_call_domain{0};
std::atomic<const NvtxCallDomain*> g_calls{nullptr};

const NvtxCallDomain* calls_of(uint64_t domain) {
  const bool own = domain != 0 && domain == g_call_domain.load(std::memory_order_relaxed);
  return own ? g_calls.load(std::memory_order_acquire) : nullptr;
}

// XLA pushes its annotations on this domain, or, where no tool gives it one, on the stack that its
// own profiler reads (tsl/profiler/lib/scoped_annotation.h). It asks once in a process.
bool leaves_domain_to_xla(std::string_view name) {
  return name == "TSL" && !activity_on(Activity::nvtx_xla) &&
         session().config.step.source != StepSource::nvtx;
}

// 0: the program's ranges of this domain are none of ours.
uint64_t make_domain(std::string_view name) {
  if (leaves_domain_to_xla(name)) return 0;
  const auto handle = reinterpret_cast<uint64_t>(keep_nvtx_name(name));
  const NvtxCallDomain* const calls = g_calls.load(std::memory_order_acquire);
  if (calls && name == calls->name) g_call_domain.store(handle, std::memory_order_relaxed);
  return handle;
}

bool recording() { return window_is_open() && activity_on(Activity::nvtx) && !t_state.blocked; }

void count_lost_text(const nvtxEventAttributes_t& attributes) {
  if (attributes.messageType != NVTX_MESSAGE_TYPE_REGISTERED) return;
  switch (nvtx_name_loss(attributes.message.registered)) {
    case NameLoss::none: break;
    case NameLoss::end: count_loss(Loss::name_cut); break;
    case NameLoss::whole: count_loss(Loss::string_table_full); break;
  }
}

NvtxRange describe(const NvtxText& text, const nvtxEventAttributes_t* attributes, uint64_t domain) {
  NvtxRange range{};
  range.message = intern_text(text.view());
  range.domain = intern_string(nvtx_domain_name(domain));
  range.domain_handle = domain;
  if (attributes) {
    count_lost_text(*attributes);
    range.category = attributes->category;
    if (attributes->colorType == NVTX_COLOR_ARGB) range.color = attributes->color;
    // A pointer to what a schema describes (NVTX_PAYLOAD_TYPE_EXT) says nothing after the call.
    const int32_t type = attributes->payloadType;
    if (type > NVTX_PAYLOAD_UNKNOWN && type <= NVTX_PAYLOAD_TYPE_FLOAT) {
      range.payload = attributes->payload.ullValue;
      range.payload_type = static_cast<uint32_t>(type);
    }
  }
  range.recorded = true;
  range.begin = now_ticks();
  return range;
}

// Null: there is no buffer.
NvtxPayload* begin(Record* record, Kind kind, const NvtxRange& range, uint64_t end,
                   uint8_t flags = 0) {
  if (!record) return nullptr;
  begin_record(record, kind, range.begin, end, flags);
  NvtxPayload& out = record->nvtx;
  out = {};
  out.message = range.message, out.domain = range.domain;
  out.category = range.category, out.color = range.color;
  out.payload = range.payload, out.payload_type = range.payload_type & 0xff;
  return &out;
}

void publish(Kind kind, const NvtxRange& range, uint64_t end, uint32_t depth, uint8_t flags = 0) {
  Record* const record = reserve_program_record(end);
  NvtxPayload* const out = begin(record, kind, range, end, flags);
  if (!out) return;
  out->depth = depth & 0xff;
  commit_record(record);
}

void publish_started(const StartedRange& started, uint64_t end) {
  Record* const record = reserve_program_record(end);
  NvtxPayload* const out = begin(record, Kind::nvtx_range, started.range, end);
  if (!out) return;
  out->range_id = started.id;
  const uint32_t thread = current_tid();
  if (thread != started.thread) {
    out->started_on = started.thread & 0xffffff;
    out->ended_on = thread & 0xffffff;
  }
  commit_record(record);
}

// It goes on: no thread has ended it.
void cut_started(const StartedRange& started, uint64_t end) {
  Record* const record = reserve_program_record(end);
  NvtxPayload* const out = begin(record, Kind::nvtx_range, started.range, end, kFlagOpenEnd);
  if (!out) return;
  out->range_id = started.id;
  if (current_tid() != started.thread) out->started_on = started.thread & 0xffffff;
  commit_record(record);
}

// Innermost first, as they would end.
void cut_pushed(NvtxThread& thread, uint64_t end) {
  leave_older(thread);
  while (thread.depth > 0) {
    const NvtxRange& range = thread.open[--thread.depth];
    if (range.recorded) publish(Kind::nvtx_range, range, end, thread.depth, kFlagOpenEnd);
  }
}

// `record` false: it is only there for its pop to find it.
int open_range(const NvtxText& text, const nvtxEventAttributes_t* attributes, uint64_t domain,
               bool record) {
  NvtxThread* const thread = record ? thread_ranges() : t_state.nvtx;
  if (!thread) return 0;
  leave_older(*thread);
  if (!record && thread->depth == 0) return 0;
  if (thread->depth == NvtxThread::kDepth) {
    ++thread->beyond;
    if (record) count_loss(Loss::nvtx_depth);
    return static_cast<int>(thread->depth);
  }
  NvtxRange range{};
  range.domain_handle = domain;
  if (record) range = describe(text, attributes, domain);
  thread->open[thread->depth] = range;
  return static_cast<int>(thread->depth++);
}

int push(const NvtxText& text, const nvtxEventAttributes_t* attributes, uint64_t domain) {
  // The boundary first: a range that opens the window is part of it.
  step_nvtx(text.view(), now_ticks(), is_this_thread);
  return open_range(text, attributes, domain, recording());
}

// Of the domain of calls. `frame`: address of NVTX's caller.
int push_call(const NvtxCallDomain& calls, const nvtxEventAttributes_t* attributes, uint64_t domain,
              const void* frame) {
  const NvtxText text(attributes);
  step_nvtx(text.view(), now_ticks(), is_this_thread);
  const NvtxPayloadData* payloads = nullptr;
  size_t count = 0;
  if (attributes && attributes->payloadType == kNvtxPayloadType && attributes->reserved0 > 0) {
    payloads = reinterpret_cast<const NvtxPayloadData*>(attributes->payload.ullValue);
    count = static_cast<size_t>(attributes->reserved0);
  }
  if (calls.begin(text.view(), payloads, count, frame)) return 0;
  return open_range(text, attributes, domain, recording());
}

int pop(uint64_t domain) {
  NvtxThread* const thread = t_state.nvtx;
  if (!thread) return 0;
  leave_older(*thread);
  if (thread->depth == 0) return 0;
  if (thread->beyond) return static_cast<int>(NvtxThread::kDepth + --thread->beyond);
  // Domains nest on their own: the newest open range of this one.
  uint32_t at = thread->depth;
  while (at > 0 && thread->open[at - 1].domain_handle != domain) --at;
  if (at-- == 0) return 0;
  const NvtxRange range = thread->open[at];
  std::memmove(&thread->open[at], &thread->open[at + 1], (thread->depth - at - 1) * sizeof range);
  --thread->depth;
  if (range.recorded && nvtx_is_wanted()) publish(Kind::nvtx_range, range, now_ticks(), at);
  return static_cast<int>(at);
}

void clear_started_ranges() {
  for (StartedRange& slot : g_started_ranges) {
    if (slot.id != 0) slot = StartedRange{};
  }
  g_started = 0;
}

// Their names are in the parent's ring.
void forget_started_ranges() {
  g_started_lock.unlock();
  clear_started_ranges();
}
GPUPROF_FORGET_IN_CHILD(forget_started_ranges);

nvtxRangeId_t start_range(const NvtxText& text, const nvtxEventAttributes_t* attributes,
                          uint64_t domain) {
  step_nvtx(text.view(), now_ticks(), is_this_thread);
  const nvtxRangeId_t id = g_next_range.fetch_add(1, std::memory_order_relaxed);
  if (!recording()) return id;
  const NvtxRange range = describe(text, attributes, domain);
  const uint32_t thread = current_tid();
  const LockGuard guard(g_started_lock);
  for (size_t i = 0; i < kProbes; ++i) {
    StartedRange& slot = g_started_ranges[(id + i) % kStarted];
    if (slot.id != 0) continue;
    slot = StartedRange{id, thread, range};
    g_started.fetch_add(1, std::memory_order_relaxed);
    return id;
  }
  count_loss(Loss::nvtx_depth);
  return id;
}

void end_range(nvtxRangeId_t id) {
  // Those of a window that is over give their slots back.
  if (id == 0 || g_started.load(std::memory_order_relaxed) == 0) return;
  StartedRange started{};
  {
    const LockGuard guard(g_started_lock);
    for (size_t i = 0; i < kProbes && started.id == 0; ++i) {
      StartedRange& slot = g_started_ranges[(id + i) % kStarted];
      if (slot.id != id) continue;
      started = slot;
      slot.id = 0;
      g_started.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  if (started.id && window_is_open()) publish_started(started, now_ticks());
}

void mark(const NvtxText& text, const nvtxEventAttributes_t* attributes, uint64_t domain) {
  step_nvtx(text.view(), now_ticks(), is_this_thread);
  if (!recording()) return;
  const NvtxRange range = describe(text, attributes, domain);
  publish(Kind::nvtx_mark, range, range.begin, 0);
}

// NVTX's handle types are pointers to incomplete structs that only we look behind.
template <typename Handle>
Handle handle(const void* name) {
  return reinterpret_cast<Handle>(const_cast<void*>(name));
}
uint64_t handle_of(nvtxDomainHandle_t domain) { return reinterpret_cast<uint64_t>(domain); }

int pop_with(nvtxDomainHandle_t d, const NvtxPayloadData* payloads, size_t count) {
  const NvtxCallDomain* const calls = calls_of(handle_of(d));
  if (calls && calls->end(payloads, count)) return 0;
  return pop(handle_of(d));
}

// ---- the entries of NVTX's callback tables; signatures as in nvToolsExt.h ----

void NVTX_API mark_ex(const nvtxEventAttributes_t* a) { mark(NvtxText(a), a, 0); }
void NVTX_API mark_a(const char* message) { mark(NvtxText(message), nullptr, 0); }
void NVTX_API mark_w(const wchar_t* message) { mark(NvtxText(message), nullptr, 0); }
nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t* a) {
  return start_range(NvtxText(a), a, 0);
}
nvtxRangeId_t NVTX_API start_a(const char* message) {
  return start_range(NvtxText(message), nullptr, 0);
}
nvtxRangeId_t NVTX_API start_w(const wchar_t* message) {
  return start_range(NvtxText(message), nullptr, 0);
}
void NVTX_API range_end(nvtxRangeId_t id) { end_range(id); }
int NVTX_API push_ex(const nvtxEventAttributes_t* a) { return push(NvtxText(a), a, 0); }
int NVTX_API push_a(const char* message) { return push(NvtxText(message), nullptr, 0); }
int NVTX_API push_w(const wchar_t* message) { return push(NvtxText(message), nullptr, 0); }
int NVTX_API range_pop() { return pop(0); }

void NVTX_API domain_mark_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  mark(NvtxText(a), a, handle_of(d));
}
nvtxRangeId_t NVTX_API domain_start_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  return start_range(NvtxText(a), a, handle_of(d));
}
void NVTX_API domain_range_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end_range(id); }
int NVTX_API domain_push_ex(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  if (const NvtxCallDomain* const calls = calls_of(handle_of(d))) {
    return push_call(*calls, a, handle_of(d), __builtin_dwarf_cfa());
  }
  return push(NvtxText(a), a, handle_of(d));
}
int NVTX_API domain_pop(nvtxDomainHandle_t d) { return pop_with(d, nullptr, 0); }
nvtxStringHandle_t NVTX_API register_string_a(nvtxDomainHandle_t, const char* text) {
  return handle<nvtxStringHandle_t>(keep_nvtx_name(NvtxText(text).view()));
}
nvtxStringHandle_t NVTX_API register_string_w(nvtxDomainHandle_t, const wchar_t* text) {
  return handle<nvtxStringHandle_t>(keep_nvtx_name(NvtxText(text).view()));
}
nvtxDomainHandle_t NVTX_API domain_create_a(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(make_domain(NvtxText(name).view()));
}
nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(make_domain(NvtxText(name).view()));
}

// ---- the payload extension; signatures as in nvToolsExtPayload.h

// A program that gives no number of its own gets one.
uint64_t schema_number(bool given, uint64_t number) {
  static std::atomic<uint64_t> next{uint64_t{1} << 32};
  return given ? number : next.fetch_add(1, std::memory_order_relaxed);
}
uint64_t NVTX_API register_schema(nvtxDomainHandle_t d, const NvtxSchema* schema) {
  if (!schema) return 0;
  if (calls_of(handle_of(d))) keep_nccl_schema(*schema);
  return schema_number(schema->fields & NvtxSchema::kId, schema->id);
}
uint64_t NVTX_API register_enum(nvtxDomainHandle_t d, const NvtxEnum* enumeration) {
  if (!enumeration) return 0;
  if (calls_of(handle_of(d))) keep_nccl_enum(*enumeration);
  return schema_number(enumeration->fields & NvtxEnum::kId, enumeration->id);
}
// Its text, if any, lies in what schemas describe, which only NCCL's domain is read by.
int NVTX_API push_payload(nvtxDomainHandle_t d, const NvtxPayloadData*, size_t) {
  return open_range(NvtxText(""), nullptr, handle_of(d), false);
}
int NVTX_API pop_payload(nvtxDomainHandle_t d, const NvtxPayloadData* payloads, size_t count) {
  return pop_with(d, payloads, count);
}

// ---- names of what the program makes; a session that records reads them ----

void name_category(uint64_t domain, uint32_t category, const NvtxText& name) {
  name_nvtx_object(NvtxObject::category, category, domain, name.view());
}
void NVTX_API name_category_a(uint32_t c, const char* n) { name_category(0, c, NvtxText(n)); }
void NVTX_API name_category_w(uint32_t c, const wchar_t* n) { name_category(0, c, NvtxText(n)); }
void NVTX_API domain_name_category_a(nvtxDomainHandle_t d, uint32_t c, const char* n) {
  name_category(handle_of(d), c, NvtxText(n));
}
void NVTX_API domain_name_category_w(nvtxDomainHandle_t d, uint32_t c, const wchar_t* n) {
  name_category(handle_of(d), c, NvtxText(n));
}

// The identifiers are threads, streams or GPUs, as `Object` says.
template <NvtxObject Object, typename Id, typename Char>
void NVTX_API name_object(Id id, const Char* name) {
  uint64_t number = 0;
  if constexpr (std::is_pointer_v<Id>) {
    number = reinterpret_cast<uint64_t>(id);
  } else {
    number = static_cast<uint64_t>(id);
  }
  name_nvtx_object(Object, number, 0, NvtxText(name).view());
}

nvtxResourceHandle_t NVTX_API create_resource(nvtxDomainHandle_t,
                                              nvtxResourceAttributes_t* attributes) {
  constexpr int32_t kThread = NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE;
  if (attributes) {
    nvtxEventAttributes_t named{};
    named.messageType = attributes->messageType;
    named.message = attributes->message;
    const NvtxText name(&named);
    const uint64_t id = attributes->identifier.ullValue;
    switch (attributes->identifierType) {
      case kThread: name_nvtx_object(NvtxObject::thread, id, 0, name.view()); break;
      case NVTX_RESOURCE_TYPE_CUDA_STREAM:
      case NVTX_RESOURCE_TYPE_CUDART_STREAM:
        name_nvtx_object(NvtxObject::stream, id, 0, name.view());
        break;
      case NVTX_RESOURCE_TYPE_CUDA_DEVICE:
      case NVTX_RESOURCE_TYPE_CUDART_DEVICE:
        name_nvtx_object(NvtxObject::device, static_cast<uint32_t>(id), 0, name.view());
        break;
      default: break;
    }
  }
  return handle<nvtxResourceHandle_t>(keep_nvtx_name({}));  // nobody looks behind it
}

struct TableRow {
  unsigned id;
  NvtxFunctionPointer function;
};

template <typename Function>
TableRow row(unsigned id, Function* function) {
  return {id, reinterpret_cast<NvtxFunctionPointer>(function)};
}

template <size_t N>
void fill(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module,
          const TableRow (&rows)[N]) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks.GetModuleFunctionTable(module, &table, &size)) return;
  for (const TableRow& entry : rows) {
    if (entry.id < size && table[entry.id]) *table[entry.id] = entry.function;
  }
}

}  // namespace

NvtxCall* nvtx_call(bool make) {
  NvtxThread* const thread = make ? thread_ranges() : t_state.nvtx;
  return thread ? &thread->call : nullptr;
}

bool nvtx_is_wanted() {
  const SessionPhase phase = session().phase.load(std::memory_order_relaxed);
  return phase == SessionPhase::active || phase == SessionPhase::closing;
}

int attach_nvtx_extension(const NvtxExtension* extension) {
  if (!extension || extension->module != kNvtxPayloadModule || extension->segment_count == 0 ||
      !extension->segments || !ensure_configured()) {
    return 0;
  }
  // NVTX3EXT_CBID_nvtxPayloadSchemaRegister and so on.
  const std::pair<size_t, intptr_t> functions[] = {{0, reinterpret_cast<intptr_t>(register_schema)},
                                                   {1, reinterpret_cast<intptr_t>(register_enum)},
                                                   {3, reinterpret_cast<intptr_t>(push_payload)},
                                                   {4, reinterpret_cast<intptr_t>(pop_payload)}};
  const NvtxExtension::Segment& slots = extension->segments[0];
  for (const auto& [slot, function] : functions) {
    if (slot < slots.slot_count) slots.slots[slot] = function;
  }
  return 1;
}

// Whether anything that NVTX tells is recorded, or may mark steps.
static bool wants_nvtx() {
  const StepSource source = session().config.step.source;
  return activity_on(Activity::nvtx) || activity_on(Activity::nccl) ||
         source == StepSource::automatic || source == StepSource::nvtx;
}

int attach_nvtx(const void* (*get_table)(unsigned), const NvtxCallDomain& calls) {
  g_host.nvtx_goes_elsewhere = false;  // the tool that was named is this library
  if (!get_table || !ensure_configured() || !wants_nvtx()) return 0;
  g_calls.store(&calls, std::memory_order_release);
  survive_fork_with_nvtx_names();
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (!callbacks || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  const TableRow core[] = {
      row(NVTX_CBID_CORE_MarkEx, mark_ex),
      row(NVTX_CBID_CORE_MarkA, mark_a),
      row(NVTX_CBID_CORE_MarkW, mark_w),
      row(NVTX_CBID_CORE_RangeStartEx, start_ex),
      row(NVTX_CBID_CORE_RangeStartA, start_a),
      row(NVTX_CBID_CORE_RangeStartW, start_w),
      row(NVTX_CBID_CORE_RangeEnd, range_end),
      row(NVTX_CBID_CORE_RangePushEx, push_ex),
      row(NVTX_CBID_CORE_RangePushA, push_a),
      row(NVTX_CBID_CORE_RangePushW, push_w),
      row(NVTX_CBID_CORE_RangePop, range_pop),
      row(NVTX_CBID_CORE_NameCategoryA, name_category_a),
      row(NVTX_CBID_CORE_NameCategoryW, name_category_w),
      row(NVTX_CBID_CORE_NameOsThreadA, name_object<NvtxObject::thread, uint32_t, char>),
      row(NVTX_CBID_CORE_NameOsThreadW, name_object<NvtxObject::thread, uint32_t, wchar_t>),
  };
  const TableRow core2[] = {
      row(NVTX_CBID_CORE2_DomainMarkEx, domain_mark_ex),
      row(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start_ex),
      row(NVTX_CBID_CORE2_DomainRangeEnd, domain_range_end),
      row(NVTX_CBID_CORE2_DomainRangePushEx, domain_push_ex),
      row(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
      row(NVTX_CBID_CORE2_DomainRegisterStringA, register_string_a),
      row(NVTX_CBID_CORE2_DomainRegisterStringW, register_string_w),
      row(NVTX_CBID_CORE2_DomainCreateA, domain_create_a),
      row(NVTX_CBID_CORE2_DomainCreateW, domain_create_w),
      row(NVTX_CBID_CORE2_DomainNameCategoryA, domain_name_category_a),
      row(NVTX_CBID_CORE2_DomainNameCategoryW, domain_name_category_w),
      row(NVTX_CBID_CORE2_DomainResourceCreate, create_resource),
  };
  // CUdevice is an int, CUstream and cudaStream_t are pointers.
  const TableRow cuda[] = {
      row(NVTX_CBID_CUDA_NameCuDeviceA, name_object<NvtxObject::device, int, char>),
      row(NVTX_CBID_CUDA_NameCuDeviceW, name_object<NvtxObject::device, int, wchar_t>),
      row(NVTX_CBID_CUDA_NameCuStreamA, name_object<NvtxObject::stream, const void*, char>),
      row(NVTX_CBID_CUDA_NameCuStreamW, name_object<NvtxObject::stream, const void*, wchar_t>),
  };
  const TableRow cudart[] = {
      row(NVTX_CBID_CUDART_NameCudaDeviceA, name_object<NvtxObject::device, int, char>),
      row(NVTX_CBID_CUDART_NameCudaDeviceW, name_object<NvtxObject::device, int, wchar_t>),
      row(NVTX_CBID_CUDART_NameCudaStreamA, name_object<NvtxObject::stream, const void*, char>),
      row(NVTX_CBID_CUDART_NameCudaStreamW, name_object<NvtxObject::stream, const void*, wchar_t>),
  };
  fill(*callbacks, NVTX_CB_MODULE_CORE, core);
  fill(*callbacks, NVTX_CB_MODULE_CORE2, core2);
  fill(*callbacks, NVTX_CB_MODULE_CUDA, cuda);
  fill(*callbacks, NVTX_CB_MODULE_CUDART, cudart);
  return 1;
}

void nvtx_window_begins() {
  g_windows.fetch_add(1, std::memory_order_relaxed);
  if (g_started.load(std::memory_order_relaxed) == 0) return;
  const LockGuard guard(g_started_lock);
  clear_started_ranges();
}

void nvtx_window_ends(uint64_t ticks) {
  if (NvtxThread* const thread = t_state.nvtx) cut_pushed(*thread, ticks);
  if (g_started.load(std::memory_order_relaxed) == 0) return;
  const LockGuard guard(g_started_lock);
  for (const StartedRange& started : g_started_ranges) {
    // Another thread may have started it after the step had ended.
    if (started.id != 0 && started.range.begin < ticks) cut_started(started, ticks);
  }
  clear_started_ranges();
}

void prepare_nvtx_thread() {
  if (activity_on(Activity::nvtx)) (void)thread_ranges();
}

}  // namespace gpuprof
