// SPDX-License-Identifier: Apache-2.0
#include "preload/heap_hooks.h"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "collector/sources/heap.h"
#include "preload/objects/got_patch.h"

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

// No address of a real function stands here: in a program with addresses fixed when it was linked
// that would be of its own procedure linkage table, whose calls come to us.
HeapHook g_rows[] = {
    {"malloc", "malloc", reinterpret_cast<void*>(&hook_malloc), false, nullptr},
    {"free", "free", reinterpret_cast<void*>(&hook_free), false, nullptr},
    {"calloc", "calloc", reinterpret_cast<void*>(&hook_calloc), false, nullptr},
    {"realloc", "realloc", reinterpret_cast<void*>(&hook_realloc), false, nullptr},
    {"posix_memalign", "posix_memalign", reinterpret_cast<void*>(&hook_posix_memalign), false,
     nullptr},
    {"aligned_alloc", "aligned_alloc", reinterpret_cast<void*>(&hook_aligned_alloc), false,
     nullptr},
    {"memalign", "memalign", reinterpret_cast<void*>(&hook_memalign), false, nullptr},
    {"valloc", "valloc", reinterpret_cast<void*>(&hook_valloc), false, nullptr},
    {"mmap", "mmap", reinterpret_cast<void*>(&hook_mmap), true, nullptr},
    {"mmap64", "mmap", reinterpret_cast<void*>(&hook_mmap), true, nullptr},
    {"munmap", "munmap", reinterpret_cast<void*>(&hook_munmap), true, nullptr}};

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
