// SPDX-License-Identifier: Apache-2.0
// Which of the modules that a program calls from outside of any module makes its steps: the leader.
// The first that is called leads. Another takes the lead with a call of its own, if
//
// it is called most: kFewest times and at least twice as often as the leader (the decoder after its
//   encoder, the network of a diffusion after the text model);
// the leader is gone (a server loads a model anew): others have been called more than kSilence
//   times since its last call, and twice as often as ever before between two of its calls. The
//   other has been called kFewest times of these.
//
// Calls of one module that want gradients and those that want none (its training, its evaluation)
// go as two modules. The latter take the lead from no training, but where kFewest calls have wanted
// gradients and more than kEvaluation have passed without, or twice as many as ever. The former
// take it from the latter at once.
//
// A few modules are known at a time. A new one takes the place of one that was called once, or of
// the one that has been gone for longest; one that finds no place is no step. Modules are told
// apart by address. No clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class LeadingModule {
 public:
  enum class Call : uint8_t { other, leads, takes_over };
  Call call(uint64_t module, bool trains);

  static constexpr uint32_t kFewest = 3;
  static constexpr uint64_t kSilence = 64;
  static constexpr uint64_t kEvaluation = 1024;

 private:
  static constexpr size_t kKnown = 8;
  struct Module {
    uint64_t id;
    bool trains;
    uint64_t calls;         // since it was first called, or the leader before this one was gone
    uint64_t last;          // number of its last call among all of them, from 1; 0: none yet
    uint64_t longest;       // the most calls of others that ever lay between two of its own
    uint64_t leaders_last;  // `last` of the leader at its own last call; since then:
    uint64_t since;         //   how often it was called
  };
  Module* find(uint64_t module, bool trains);
  Module* place_for(uint64_t module, bool trains);
  bool is_gone(const Module& module, uint64_t silence) const;
  void count(Module& called);
  void forget_what_was_called_before();

  Module known_[kKnown]{};
  size_t count_ = 0, leader_ = 0;
  uint64_t all_ = 0;  // calls
};

}  // namespace gpuprof
