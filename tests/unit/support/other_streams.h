// SPDX-License-Identifier: Apache-2.0
// Orders of launches of programs that program_streams.h does not have: experts that get work or
// none, recurrent networks over buckets of lengths, evaluation with its own network, weights
// averaged now and then, skipped optimizer steps, regularized adversaries, diffusion, agents with
// replayed batches. The search is not tuned to these: they show how it does on shapes that it has
// not seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/support/launch_streams.h"

namespace gpuprof::test {

class OtherPrograms {
 public:
  using Kernels = std::vector<uint32_t>;
  static constexpr size_t kMost = 90'000;  // launches of a stream

  explicit OtherPrograms(uint64_t seed) : random_(seed) {}

  // Each layer runs two to four of its experts, another choice in each step.
  LaunchStream experts() {
    const int depth = from(4, 16), count = from(4, 8), evaluate = from(20, 120),
              batches = from(2, 20);
    const Kernels attention = some(8, 14), back = some(12, 20), gate = some(3, 5),
                  head = some(4, 8), head_back = some(4, 8), adam = some(1, 2);
    std::vector<Kernels> expert, expert_back;
    for (int i = 0; i < count; ++i) expert.push_back(some(2, 3)), expert_back.push_back(some(3, 5));
    const int updates = from(2, 10);
    LaunchStream out;
    const auto forward = [&] {
      for (int i = 0; i < depth; ++i) {
        put(out, attention), put(out, gate);
        for (int j = from(2, 4); j > 0; --j) put(out, expert[index(expert)]);
      }
      put(out, head);
    };
    for (int step = 1; step <= 3 * evaluate && out.kernels.size() < kMost; ++step) {
      forward(), put(out, head_back);
      for (int i = 0; i < depth; ++i) {
        for (int j = from(2, 4); j > 0; --j) put(out, expert_back[index(expert_back)]);
        put(out, back);
      }
      for (int i = 0; i < updates; ++i) put(out, adam);
      ++out.steps;
      if (step % evaluate == 0)
        for (int i = 0; i < batches; ++i) forward();
    }
    return out;
  }

  // A cell for each element of a sequence; batches of a few lengths in any order.
  LaunchStream recurrent() {
    const Kernels cell = some(4, 8), cell_back = some(6, 10), embed = some(2, 4), head = some(4, 6),
                  head_back = some(4, 6), adam = some(2, 3);
    const int shortest = from(8, 20), updates = from(3, 8), lengths = from(2, 4);
    LaunchStream out;
    for (int step = 0; step < 400 && out.kernels.size() < kMost; ++step) {
      const int length = shortest + 2 * from(0, lengths);
      put(out, embed);
      for (int i = 0; i < length; ++i) put(out, cell);
      put(out, head), put(out, head_back);
      for (int i = 0; i < length; ++i) put(out, cell_back);
      for (int i = 0; i < updates; ++i) put(out, adam);
      ++out.steps;
    }
    return out;
  }

  // The weights' average is taken every few steps and evaluated, with metrics of its own.
  LaunchStream averaged() {
    const int layers = from(20, 60), every = from(5, 25), evaluate = from(40, 200),
              batches = from(4, 30);
    const Kernels library = some(16, 16), back = some(20, 20), head = some(3, 6),
                  update = some(2, 4), average = some(1, 2), metric = some(4, 9);
    Kernels forward, backward;
    for (int i = 0; i < layers; ++i) {
      for (int j = from(2, 3); j > 0; --j) forward.push_back(library[index(library)]);
      for (int j = from(2, 4); j > 0; --j) backward.push_back(back[index(back)]);
    }
    LaunchStream out;
    for (int step = 1; step <= 4 * evaluate && out.kernels.size() < kMost; ++step) {
      put(out, forward), put(out, head), put(out, backward);
      for (int i = 0; i < layers / 2; ++i) put(out, update);
      ++out.steps;
      if (step % every == 0)
        for (int i = 0; i < layers / 2; ++i) put(out, average);
      if (step % evaluate == 0) {
        for (int i = 0; i < batches; ++i) put(out, forward), put(out, head);
        put(out, metric);
      }
    }
    return out;
  }

  // A loss scale that is too large skips the first optimizer steps, and one now and then. Those
  // iterations are steps, too.
  LaunchStream scaled() {
    const int depth = from(6, 24), skipped = from(2, 6), every = from(60, 300),
              updates = from(1, 6);
    const Kernels embed = some(2, 4), layer = some(6, 12), back = some(10, 18), head = some(4, 8),
                  scale = some(2, 3), adam = some(1, 3);
    LaunchStream out;
    for (int step = 1; step <= 350 && out.kernels.size() < kMost; ++step) {
      put(out, embed);
      for (int i = 0; i < depth; ++i) put(out, layer);
      put(out, head);
      for (int i = 0; i < depth; ++i) put(out, back);
      put(out, scale);
      if (step > skipped && step % every != 0)
        for (int i = 0; i < updates; ++i) put(out, adam);
      ++out.steps;
    }
    return out;
  }

  // Two networks in turn; every sixteenth iteration has a penalty of second order.
  LaunchStream regularized() {
    const int depth = from(5, 14), penalty_every = chance(50) ? 16 : 8;
    const Kernels make = some(4, 8), make_back = some(6, 10), judge = some(4, 8),
                  judge_back = some(6, 10), adam = some(1, 2), penalty = some(12, 20),
                  adam_2 = some(1, 2);
    const auto times = [&](LaunchStream& out, const Kernels& kernels) {
      for (int i = 0; i < depth; ++i) put(out, kernels);
    };
    LaunchStream out;
    for (int step = 1; step <= 200 && out.kernels.size() < kMost; ++step) {
      times(out, make), times(out, judge), times(out, judge), times(out, judge_back);
      if (step % penalty_every == 0) times(out, penalty);
      put(out, adam);
      times(out, make), times(out, judge), times(out, judge_back), times(out, make_back);
      put(out, adam_2);
      ++out.steps;
    }
    return out;
  }

  // Images: a text model, 20 to 50 steps of denoising, a decoder. A step is one of denoising.
  LaunchStream diffusion() {
    const int depth = from(8, 20), denoise = from(20, 50), images = from(4, 12);
    const Kernels text = some(6, 9), down = some(8, 14), up = some(9, 15), schedule = some(4, 8),
                  decode = some(6, 10);
    LaunchStream out;
    for (int image = 0; image < images && out.kernels.size() < kMost; ++image) {
      for (int i = 0; i < 12; ++i) put(out, text);
      for (int step = 0; step < denoise; ++step) {
        for (int i = 0; i < depth; ++i) put(out, down);
        for (int i = 0; i < depth; ++i) put(out, up);
        put(out, schedule);
        ++out.steps;
      }
      for (int i = 0; i < 8; ++i) put(out, decode);
    }
    return out;
  }

  // Games of any length, then several passes over what was played.
  LaunchStream replayed() {
    const int depth = from(3, 8), learned = from(8, 32), rounds = from(6, 20);
    const Kernels layer = some(3, 6), act = some(3, 6), back = some(5, 9), loss = some(6, 12),
                  adam = some(1, 3), advantage = some(10, 20);
    LaunchStream out;
    for (int round = 0; round < rounds && out.kernels.size() < kMost; ++round) {
      for (int i = from(30, 90); i > 0; --i) {
        for (int j = 0; j < depth; ++j) put(out, layer);
        put(out, act);
      }
      put(out, advantage);
      for (int i = 0; i < learned; ++i) {
        for (int j = 0; j < depth; ++j) put(out, layer);
        put(out, loss);
        for (int j = 0; j < depth; ++j) put(out, back);
        put(out, adam);
        ++out.steps;
      }
    }
    return out;
  }

  // Accumulation that doubles once, with evaluation.
  LaunchStream doubled() {
    const int depth = from(4, 12), micro = from(1, 3), evaluate = from(30, 100),
              updates = from(2, 8);
    const Kernels embed = some(2, 4), layer = some(5, 9), back = some(8, 13), head = some(4, 7),
                  adam = some(2, 3), metric = some(2, 5);
    LaunchStream out;
    const int steps = 4 * evaluate;
    for (int step = 1; step <= steps && out.kernels.size() < kMost; ++step) {
      for (int batch = step > steps / 2 ? 2 * micro : micro; batch > 0; --batch) {
        put(out, embed);
        for (int i = 0; i < depth; ++i) put(out, layer);
        put(out, head);
        for (int i = 0; i < depth; ++i) put(out, back);
      }
      for (int i = 0; i < updates; ++i) put(out, adam);
      ++out.steps;
      for (int i = 0; step % evaluate == 0 && i < 10; ++i) {
        put(out, embed);
        for (int j = 0; j < depth; ++j) put(out, layer);
        put(out, head), put(out, metric);
      }
    }
    return out;
  }

 private:
  int from(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  template <typename List>
  size_t index(const List& list) {
    return random_() % list.size();
  }
  Kernels some(int least, int most) {
    Kernels out;
    for (int i = from(least, most); i > 0; --i)
      out.push_back(chance(12) ? 1 + next_ % 5 : next_ += 7);
    return out;
  }
  static void put(LaunchStream& stream, const Kernels& kernels) {
    stream.kernels.insert(stream.kernels.end(), kernels.begin(), kernels.end());
  }

  std::mt19937_64 random_;
  uint32_t next_ = 1000;
};

}  // namespace gpuprof::test
