// SPDX-License-Identifier: Apache-2.0
// Finds which of a program's optimizers ends its steps: the leader. The first that steps leads.
// Another takes the lead with a step of its own, if the leader is
//
// more frequent: it has stepped at least twice as often since the other was first seen beside it (a
//   GAN's generator), and not more than kRarest times as often. A discriminator steps 2 to 20 times
//   for each step of its generator; what is rarer is an outer loop, as DiLoCo's of 50 to 500 steps;
// gone: others have stepped more than kSilence times since its last step, and twice as often as
//   ever before between two of its steps. Only repeated steps count: with an optimizer for each
//   parameter, all of them step once between two of the leader's.
//
// A few optimizers are known at a time; one that is gone makes place for a new one. All of them are
// given up where others alone step, and one of these for the second time: until then they may be
// those of an iteration with very many. Optimizers are told apart by address; an address that is
// used again goes on as the one before. No clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuprof {

class LeadingOptimizer {
 public:
  // This optimizer has stepped: whether a step of the program ends here.
  bool ends_step(uint64_t optimizer);

  static constexpr uint32_t kSilence = 16;
  static constexpr uint32_t kRarest = 20;
  static constexpr uint32_t kLongest = 200;

 private:
  static constexpr size_t kKnown = 8;
  struct Optimizer {
    uint64_t id;
    uint64_t last;     // number of its last step among all of them, from 1; 0: none yet
    uint32_t repeats;  // steps since then, of optimizers that had stepped since then already
    uint32_t longest;  // the most of these that ever lay between two of its steps, kLongest at most
    bool compared;     // has stepped since the leader leads; since then:
    uint32_t own;      //   how often again,
    uint32_t leaders;  //   and how often the leader
  };
  Optimizer* find(uint64_t optimizer);
  Optimizer* place_for(uint64_t optimizer);
  void count_step(Optimizer& stepped);
  static bool is_gone(const Optimizer& optimizer);
  static bool is_rarer(Optimizer& optimizer);
  void lead(Optimizer& optimizer);

  Optimizer known_[kKnown]{};
  size_t count_ = 0;
  Optimizer* leader() { return &known_[leader_]; }
  size_t leader_ = 0;
  uint64_t steps_ = 0;
  uint64_t unknown_ = 0;  // steps in a row of optimizers that found no place
  uint64_t most_unknown_ = 256;
  uint64_t one_unknown_ = 0;     // of these, the one that stepped last when it was remembered
  uint64_t remembered_for_ = 0;  // until there are so many
  bool unknown_recurs_ = false;
};

}  // namespace gpuprof
