// SPDX-License-Identifier: Apache-2.0
// Which of the modules that a program calls from outside of any module makes its steps: the one
// that is called most. The first leads; another takes the lead once it has been called kFewest
// times and at least twice as often (the decoder after its encoder, the network of a diffusion
// after the text model). A few modules are known at a time; one that comes when there is no place
// is no step. Modules are told apart by address. No clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class LeadingModule {
 public:
  enum class Call : uint8_t { other, leads, takes_over };
  Call call(uint64_t module);

  static constexpr uint32_t kFewest = 3;

 private:
  static constexpr size_t kKnown = 8;
  struct Module {
    uint64_t id;
    uint64_t calls;
  };
  Module* find(uint64_t module);

  Module known_[kKnown]{};
  size_t count_ = 0, leader_ = 0;
};

}  // namespace gpuprof
