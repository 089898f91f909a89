// SPDX-License-Identifier: Apache-2.0
#include "preload/heap_hooks.h"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "collector/heap.h"
#include "preload/got_patch.h"

namespace gpuprof {
namespace {

constinit std::atomic<bool> g_patched{false};

void* hook_malloc(size_t bytes) {
  void* const given = ::malloc(bytes);
  note_heap_given(HeapCall::malloc, given, bytes);
  return given;
}

void* hook_calloc(size_t count, size_t size) {
  void* const given = ::calloc(count, size);
  note_heap_given(HeapCall::calloc, given, count * size);
  return given;
}

// Gives all of its bytes anew, wherever they are then.
void* hook_realloc(void* before, size_t bytes) {
  LiveRow was{};
  const bool sampled = heap_sample_at(before, was);
  void* const given = ::realloc(before, bytes);
  if (sampled) {
    const bool kept = !given && bytes != 0;
    kept ? put_heap_sample_back(was) : record_heap_release(HeapCall::realloc, was);
  }
  note_heap_given(HeapCall::realloc, given, bytes);
  return given;
}

void hook_free(void* address) {
  LiveRow was{};
  if (heap_sample_at(address, was)) record_heap_release(HeapCall::free, was);
  ::free(address);
}

int hook_posix_memalign(void** out, size_t alignment, size_t bytes) {
  const int failed = ::posix_memalign(out, alignment, bytes);
  if (failed == 0) note_heap_given(HeapCall::posix_memalign, *out, bytes);
  return failed;
}

void* hook_aligned_alloc(size_t alignment, size_t bytes) {
  void* const given = ::aligned_alloc(alignment, bytes);
  note_heap_given(HeapCall::aligned_alloc, given, bytes);
  return given;
}

void* hook_memalign(size_t alignment, size_t bytes) {
  void* const given = ::memalign(alignment, bytes);
  note_heap_given(HeapCall::memalign, given, bytes);
  return given;
}

void* hook_valloc(size_t bytes) {
  void* const given = ::valloc(bytes);
  note_heap_given(HeapCall::valloc, given, bytes);
  return given;
}

// Memory that is its own and can be written: not files, not room that is only kept free, not what
// is put into such room.
void* hook_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* const given = ::mmap(address, bytes, protection, flags, file, offset);
  const bool counts = given != MAP_FAILED && (flags & MAP_ANONYMOUS) && !(flags & MAP_FIXED) &&
                      (protection & PROT_WRITE);
  if (counts) note_heap_given(HeapCall::mmap, given, bytes);
  return given;
}

// Of a sample all goes with its first page: what is unmapped in parts mostly was given in parts.
int hook_munmap(void* address, size_t bytes) {
  LiveRow was{};
  const bool sampled = heap_sample_at(address, was);
  const int failed = ::munmap(address, bytes);
  if (sampled) failed ? put_heap_sample_back(was) : record_heap_release(HeapCall::munmap, was);
  return failed;
}

template <typename Function>
constexpr HeapHook row_of(const char* name, const char* called, Function* hook, bool maps) {
  return {name, called, reinterpret_cast<void*>(hook), maps, nullptr};
}

// No address of a real function stands here: in a program with addresses fixed when it was linked
// that would be of its own procedure linkage table, whose calls come to us.
constinit HeapHook g_rows[] = {
    row_of("malloc", "malloc", hook_malloc, false),
    row_of("free", "free", hook_free, false),
    row_of("calloc", "calloc", hook_calloc, false),
    row_of("realloc", "realloc", hook_realloc, false),
    row_of("posix_memalign", "posix_memalign", hook_posix_memalign, false),
    row_of("aligned_alloc", "aligned_alloc", hook_aligned_alloc, false),
    row_of("memalign", "memalign", hook_memalign, false),
    row_of("valloc", "valloc", hook_valloc, false),
    row_of("mmap", "mmap", hook_mmap, true),
    row_of("mmap64", "mmap", hook_mmap, true),
    row_of("munmap", "munmap", hook_munmap, true)};

}  // namespace

const HeapHook* heap_hook(const char* name) {
  for (const HeapHook& row : g_rows) {
    if (std::strcmp(row.name, name) == 0) return &row;
  }
  return nullptr;
}

void patch_heap_calls() {
  for (HeapHook& row : g_rows) row.real = called_by_us(row.called);
  g_patched.store(true, std::memory_order_release);
  patch_loaded_since({}, nullptr, PatchedCalls::heap);
}

bool heap_calls_are_patched() { return g_patched.load(std::memory_order_acquire); }

}  // namespace gpuprof
