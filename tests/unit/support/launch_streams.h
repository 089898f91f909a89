// SPDX-License-Identifier: Apache-2.0
// Orders of launches as programs make them, with how many steps there are, and noise: kernels that
// are missing, doubled, or of something else.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gpuprof::test {

struct LaunchStream {
  std::vector<uint32_t> kernels;
  size_t steps = 0;
};

class StreamMaker {
 public:
  explicit StreamMaker(uint64_t seed) : random_(seed) {}

  // Layers that repeat, forward and backward, an optimizer of few fused kernels at the end;
  // `micro`: batches in a step.
  // Every so many steps `batches` of them are evaluated.
  LaunchStream llm(int micro, int evaluate_every = 0, int batches = 3) {
    const int layers = from(4, 40), steps = from(8, 30), per_step = from(2, 12);
    const auto forward = sequence(from(6, 14)), backward = sequence(from(8, 24));
    const auto embed = sequence(from(2, 5)), head = sequence(from(3, 8)),
               head_back = sequence(from(3, 8)), embed_back = sequence(from(1, 4));
    const uint32_t adam = fresh(), norm = fresh(), zero = fresh(), argmax = fresh();
    const bool clip = from(0, 1) != 0, zeroing = from(0, 1) != 0;
    LaunchStream out;
    for (int step = 0; step < steps; ++step) {
      for (int batch = 0; batch < micro; ++batch) {
        put(out, embed);
        for (int i = 0; i < layers; ++i) put(out, forward);
        put(out, head), put(out, head_back);
        for (int i = 0; i < layers; ++i) put(out, backward);
        put(out, embed_back);
      }
      if (clip) put(out, std::vector<uint32_t>(static_cast<size_t>(per_step / 2 + 1), norm));
      put(out, std::vector<uint32_t>(static_cast<size_t>(per_step), adam));
      if (zeroing) put(out, {zero});
      ++out.steps;
      if (evaluate_every && step % evaluate_every == evaluate_every - 1) {
        for (int batch = 0; batch < batches; ++batch) {
          put(out, embed);
          for (int i = 0; i < layers; ++i) put(out, forward);
          put(out, head), put(out, {argmax});
        }
      }
    }
    return out;
  }

  // Layers that differ, of a library's few kernels; an optimizer of three kernels for each
  // parameter or a few for all.
  LaunchStream cnn(int evaluate_every = 0, int batches = 3) {
    const int layers = from(16, 60), steps = from(8, 30);
    const auto library = sequence(14), library_back = sequence(18);
    std::vector<uint32_t> forward, backward;
    for (int i = 0; i < layers; ++i) {
      for (int j = from(2, 4); j > 0; --j) forward.push_back(library[index(library)]);
      for (int j = from(3, 6); j > 0; --j) backward.push_back(library_back[index(library_back)]);
    }
    const auto head = sequence(from(3, 6)), optimizer = sequence(3);
    const uint32_t argmax = fresh();
    const int parameters = from(0, 1) ? from(2, 6) : layers * 2;
    LaunchStream out;
    for (int step = 0; step < steps; ++step) {
      ++out.steps;
      put(out, forward), put(out, head), put(out, backward);
      for (int i = 0; i < parameters; ++i) put(out, optimizer);
      if (!evaluate_every || step % evaluate_every != evaluate_every - 1) continue;
      for (int batch = 0; batch < batches; ++batch)
        put(out, forward), put(out, head), put(out, {argmax});
    }
    return out;
  }

  // Requests: a prompt, and tokens; a step is a token.
  LaunchStream generation() {
    const int layers = from(4, 32), requests = from(3, 6), fixed = from(0, 1) ? from(12, 40) : 0;
    const auto prompt = sequence(from(5, 10)), token = sequence(from(5, 10)),
               sample = sequence(from(2, 6)), embed = sequence(2);
    LaunchStream out;
    for (int request = 0; request < requests; ++request) {
      put(out, embed);
      for (int i = 0; i < layers; ++i) put(out, prompt);
      put(out, sample);
      for (int i = fixed ? fixed : from(12, 40); i > 0; --i, ++out.steps) {
        put(out, embed);
        for (int j = 0; j < layers; ++j) put(out, token);
        put(out, sample);
      }
    }
    return out;
  }

  // Of each hundred kernels up to `percent` missing, and as many added; half of these of the
  // program's own.
  void disturb(LaunchStream& stream, double percent) {
    std::vector<uint32_t> out;
    const uint32_t other = fresh();
    for (const uint32_t kernel : stream.kernels) {
      if (chance(percent / 2)) continue;
      out.push_back(kernel);
      if (!chance(percent / 2)) continue;
      out.push_back(chance(50) ? stream.kernels[index(stream.kernels)]
                               : other + static_cast<uint32_t>(from(0, 40)));
    }
    stream.kernels = std::move(out);
  }

  // No step at all.
  LaunchStream noise() {
    LaunchStream out;
    const int count = from(2000, 20000), kinds = from(5, 60);
    for (int i = 0; i < count; ++i) out.kernels.push_back(static_cast<uint32_t>(from(0, kinds)));
    return out;
  }

  int from(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
  }

 private:
  bool chance(double percent) { return static_cast<double>(random_() % 100'000) < percent * 1000; }
  template <typename List>
  size_t index(const List& list) {
    return random_() % list.size();
  }
  uint32_t fresh() { return next_ += 50; }
  // Some kernels come twice in it, and some (casts, additions) in all sequences.
  std::vector<uint32_t> sequence(int length) {
    std::vector<uint32_t> out;
    for (int i = 0; i < length; ++i) {
      const int sort = from(0, 9);
      out.push_back(sort == 0 && i ? out[index(out)]
                    : sort == 1    ? static_cast<uint32_t>(from(1, 4))
                                   : fresh());
    }
    return out;
  }
  static void put(LaunchStream& stream, const std::vector<uint32_t>& kernels) {
    stream.kernels.insert(stream.kernels.end(), kernels.begin(), kernels.end());
  }

  std::mt19937_64 random_;
  uint32_t next_ = 1000;
};

}  // namespace gpuprof::test
