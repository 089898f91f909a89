// SPDX-License-Identifier: Apache-2.0
// Growable arrays for code that runs inside the traced process. Memory comes straight from mmap:
// the host may have replaced its allocator, or we may be watching it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gpuprof {

// A vector of trivially copyable items. Growth can fail: push and resize return false then and the
// contents stay as they were. Not thread-safe.
template <typename T>
class PodVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PodVector() = default;
  PodVector(const PodVector&) = delete;
  PodVector& operator=(const PodVector&) = delete;
  PodVector(PodVector&& other) noexcept { swap(other); }
  PodVector& operator=(PodVector&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PodVector() { release(); }

  [[nodiscard]] bool reserve(size_t count) {
    if (count <= capacity_) return true;
    size_t want = capacity_ ? capacity_ * 2 : 4096 / sizeof(T) + 1;
    if (want < count) want = count;
    const size_t bytes = (want * sizeof(T) + 4095) & ~size_t{4095};
    void* const grown = map(bytes);
    if (grown == MAP_FAILED) return false;
    data_ = static_cast<T*>(grown);
    mapped_ = bytes;
    capacity_ = bytes / sizeof(T);
    return true;
  }
  [[nodiscard]] bool push_back(const T& item) {
    if (size_ == capacity_ && !reserve(size_ + 1)) return false;
    data_[size_++] = item;
    return true;
  }
  [[nodiscard]] bool append(const T* items, size_t count) {
    if (!reserve(size_ + count)) return false;
    if (count) std::memcpy(static_cast<void*>(data_ + size_), items, count * sizeof(T));
    size_ += count;
    return true;
  }
  // New items are zero.
  [[nodiscard]] bool resize(size_t count) {
    if (!reserve(count)) return false;
    if (count > size_)
      std::memset(static_cast<void*>(data_ + size_), 0, (count - size_) * sizeof(T));
    size_ = count;
    return true;
  }
  void clear() { size_ = 0; }
  void truncate(size_t count) {
    if (count < size_) size_ = count;
  }
  void release() {
    if (data_) ::munmap(data_, mapped_);
    data_ = nullptr;
    size_ = capacity_ = mapped_ = 0;
  }
  void swap(PodVector& other) noexcept {
    T* const data = data_;
    const size_t size = size_, capacity = capacity_, mapped = mapped_;
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_, mapped_ = other.mapped_;
    other.data_ = data, other.size_ = size, other.capacity_ = capacity, other.mapped_ = mapped;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  // The items in memory of this size.
  void* map(size_t bytes) {
    constexpr int kAccess = PROT_READ | PROT_WRITE, kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
    if (!data_) return ::mmap(nullptr, bytes, kAccess, kPrivate, -1, 0);
#ifdef __SANITIZE_THREAD__
    // It does not see mremap: what it moves away from would seem to be this thread's still.
    void* const moved = ::mmap(nullptr, bytes, kAccess, kPrivate, -1, 0);
    if (moved == MAP_FAILED) return moved;
    std::memcpy(moved, static_cast<const void*>(data_), size_ * sizeof(T));
    ::munmap(data_, mapped_);
    return moved;
#else
    return ::mremap(data_, mapped_, bytes, MREMAP_MAYMOVE);
#endif
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t mapped_ = 0;
};

using ByteBuffer = PodVector<uint8_t>;

}  // namespace gpuprof
