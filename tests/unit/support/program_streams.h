// SPDX-License-Identifier: Apache-2.0
// Orders of launches of whole programs: loops with evaluation, checkpoints, accumulation, sequences
// that grow, adversaries that train in turn, agents that play before they learn, generation. Each
// says what the optimizer's steps are, or tokens where there is no optimizer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/support/launch_streams.h"

namespace gpuprof::test {

using Kernels = std::vector<uint32_t>;

// What a model launches, part by part.
struct StreamModel {
  Kernels embed, layer, layer_back, head, head_back, embed_back, optimizer, predict;
  std::vector<Kernels> layers, layers_back;  // of a network whose layers differ
  int depth = 0;
  int parameters = 0;  // how often the optimizer's kernels come

  size_t step_length(int batches) const {
    size_t batch = embed.size() + head.size() + head_back.size() + embed_back.size();
    for (const Kernels& each : layers) batch += each.size();
    for (const Kernels& each : layers_back) batch += each.size();
    batch += static_cast<size_t>(depth) * (layer.size() + layer_back.size());
    return batch * static_cast<size_t>(batches) +
           optimizer.size() * static_cast<size_t>(parameters);
  }
};

class ProgramMaker {
 public:
  static constexpr size_t kMostLaunches = 90'000;  // of a stream

  explicit ProgramMaker(uint64_t seed) : random_(seed) {}

  int from(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool chance(double percent) { return static_cast<double>(random_() % 100'000) < percent * 1000; }

  // Training, evaluated every `evaluate_every` steps (0: never) on some batches.
  LaunchStream training(int evaluate_every, int micro = 1) {
    const StreamModel model =
        any_model(most_length(evaluate_every ? 2 * evaluate_every : 40), micro);
    const int most = most_steps(model, micro);
    const int steps = evaluate_every
                          ? std::min(most, evaluate_every * from(2, 6) + from(0, evaluate_every))
                          : std::min(most, from(12, 400));
    const int batches = from(1, 40);
    const bool first = chance(30);  // evaluation before training, as sanity checks do
    LaunchStream out;
    if (first) evaluation(out, model, from(1, 3));
    for (int step = 1; step <= steps; ++step) {
      training_step(out, model, micro);
      if (evaluate_every && step % evaluate_every == 0) evaluation(out, model, batches);
    }
    return out;
  }

  // Kernels that gather what a checkpoint saves, every so many steps; metrics, too.
  LaunchStream checkpoints() {
    const int every = from(20, 100);
    const StreamModel model = any_model(most_length(3 * every), 1);
    const int steps = std::min(most_steps(model, 1), every * from(2, 6) + from(0, every));
    const Kernels save = sequence(from(1, 4)), metric = sequence(from(1, 3));
    const int saved = model.parameters * from(1, 3), metric_every = from(20, 60);
    LaunchStream out;
    for (int step = 1; step <= steps; ++step) {
      training_step(out, model, 1);
      if (step % metric_every == 0) put(out, metric);
      if (step % every == 0) repeat(out, save, saved);
    }
    return out;
  }

  // Sequences of training grow, and with them the pieces that attention is done in, and the kernels
  // that a library takes for a shape.
  LaunchStream growing() {
    StreamModel model = transformer(most_length(60), 1);
    const Kernels piece = sequence(from(1, 3));
    const int stages = from(2, 5), each = from(15, 60), micro = from(1, 3);
    const bool other_kernels = chance(50);
    LaunchStream out;
    for (int stage = 0; stage < stages; ++stage) {
      if (other_kernels && stage) vary(model.layer), vary(model.layer_back);
      StreamModel now = model;
      for (int i = 0; i < stage; ++i) {
        append(now.layer, piece);
        append(now.layer_back, piece);
      }
      for (int step = 0; step < each && out.kernels.size() < kMostLaunches; ++step)
        training_step(out, now, micro);
    }
    return out;
  }

  // A discriminator steps `critic` times for each step of the generator: an iteration is a step.
  LaunchStream adversaries() {
    const int critic = chance(60) ? 1 : from(2, 5);
    const StreamModel generator = any_model(most_length(120 * (critic + 1)), 1),
                      judge = any_model(most_length(120 * (critic + 1)), 1);
    const int steps = from(12, 120), sample_every = chance(50) ? from(10, 50) : 0;
    LaunchStream out;
    for (int step = 1; step <= steps && out.kernels.size() < kMostLaunches; ++step) {
      for (int i = 0; i < critic; ++i) {
        forward(out, generator), forward(out, judge), forward(out, judge);
        backward(out, judge), backward(out, judge), optimize(out, judge);
      }
      forward(out, generator), forward(out, judge), backward(out, judge), backward(out, generator);
      optimize(out, generator);
      ++out.steps;
      if (sample_every && step % sample_every == 0) forward(out, generator);
    }
    return out;
  }

  // An agent plays some steps, then learns from them; or learns after each step that it plays.
  LaunchStream reinforcement() {
    const bool each = chance(50);
    const StreamModel model = any_model(each ? 200 : 120, 1);
    const int rounds = each ? from(100, 300) : from(6, 20), played = each ? 1 : from(16, 64),
              learned = each ? 1 : from(4, 24);
    const int copied_every = from(10, 50);  // the weights of a target network
    const Kernels copy = sequence(2);
    LaunchStream out;
    for (int round = 1; round <= rounds && out.kernels.size() < kMostLaunches; ++round) {
      for (int i = 0; i < played; ++i) forward(out, model), put(out, model.predict);
      for (int i = 0; i < learned; ++i) training_step(out, model, 1);
      if (each && round % copied_every == 0) repeat(out, copy, model.parameters);
    }
    return out;
  }

  // Requests of prompts and tokens; the kernels of attention change with the length.
  LaunchStream generation() {
    const int depth = from(4, 24), requests = from(3, 10);
    const Kernels embed = sequence(2), prompt = sequence(from(5, 10)),
                  sample = sequence(from(2, 6));
    Kernels token = sequence(from(5, 10)), longer = token;
    if (chance(50))
      longer[static_cast<size_t>(from(0, static_cast<int>(longer.size()) - 1))] = fresh();
    const bool greedy_differs = chance(30);
    LaunchStream out;
    for (int request = 0; request < requests; ++request) {
      put(out, embed), repeat(out, prompt, depth), put(out, sample);
      const int tokens = from(8, 200), changes = from(50, 150);
      for (int i = 0; i < tokens && out.kernels.size() < kMostLaunches; ++i) {
        put(out, embed), repeat(out, i < changes ? token : longer, depth);
        put(out,
            greedy_differs && request % 2 ? Kernels(sample.begin(), sample.end() - 1) : sample);
        ++out.steps;
      }
    }
    return out;
  }

  // Of each hundred kernels up to `percent` missing or added.
  void disturb(LaunchStream& stream, double percent) {
    if (percent == 0) return;
    Kernels out;
    const uint32_t other = fresh();
    for (const uint32_t kernel : stream.kernels) {
      if (chance(percent / 2)) continue;
      out.push_back(kernel);
      if (chance(percent / 2)) out.push_back(other + static_cast<uint32_t>(from(0, 40)));
    }
    stream.kernels = std::move(out);
  }

 private:
  static int most_steps(const StreamModel& model, int micro) {
    return static_cast<int>(kMostLaunches / model.step_length(micro)) * 3 / 4;
  }
  static size_t most_length(int steps) {
    return kMostLaunches * 3 / 5 / static_cast<size_t>(steps);
  }

  uint32_t fresh() { return next_ += 50; }
  // Some kernels come twice in it, and some (casts, additions) in all sequences.
  Kernels sequence(int length) {
    Kernels out;
    for (int i = 0; i < length; ++i) {
      const int sort = from(0, 9);
      out.push_back(sort == 0 && i ? out[random_() % out.size()]
                    : sort == 1    ? static_cast<uint32_t>(from(1, 4))
                                   : fresh());
    }
    return out;
  }
  void vary(Kernels& kernels) {
    for (uint32_t& kernel : kernels) {
      if (chance(30)) kernel = fresh();
    }
  }

  StreamModel any_model(size_t most, int micro) {
    return chance(50) ? transformer(most, micro) : convolutions(most, micro);
  }

  // Equal layers; `most` launches in a step, about.
  StreamModel transformer(size_t most, int micro) {
    StreamModel out;
    out.embed = sequence(from(1, 4)), out.head = sequence(from(3, 8));
    out.head_back = sequence(from(3, 8)), out.embed_back = sequence(from(1, 4));
    const int wide = most > 300 ? 14 : 6;
    out.layer = sequence(from(3, wide)), out.layer_back = sequence(from(4, wide + 6));
    out.optimizer = sequence(from(1, 3)), out.predict = sequence(from(1, 4));
    out.parameters = from(1, 12);
    const size_t one = (out.layer.size() + out.layer_back.size()) * static_cast<size_t>(micro);
    out.depth = std::clamp(static_cast<int>(most / one), 2, from(4, 32));
    return out;
  }

  // Layers that differ, of a library's few kernels.
  StreamModel convolutions(size_t most, int micro) {
    StreamModel out;
    const Kernels library = sequence(14), library_back = sequence(18);
    out.head = sequence(from(3, 6)), out.predict = sequence(from(1, 4));
    out.optimizer = sequence(from(1, 3));
    const int layers = std::clamp(static_cast<int>(most) / (8 * micro), 4, from(8, 60));
    for (int i = 0; i < layers; ++i) {
      out.layers.emplace_back();
      out.layers_back.emplace_back();
      for (int j = from(2, 4); j > 0; --j) out.layers.back().push_back(library[random_() % 14]);
      for (int j = from(3, 6); j > 0; --j)
        out.layers_back.back().push_back(library_back[random_() % 18]);
    }
    out.parameters = chance(50) ? from(1, 6) : layers;
    return out;
  }

  static void put(LaunchStream& stream, const Kernels& kernels) { append(stream.kernels, kernels); }
  static void append(Kernels& to, const Kernels& kernels) {
    to.insert(to.end(), kernels.begin(), kernels.end());
  }
  static void repeat(LaunchStream& stream, const Kernels& kernels, int times) {
    for (int i = 0; i < times; ++i) put(stream, kernels);
  }
  static void forward(LaunchStream& out, const StreamModel& model) {
    put(out, model.embed);
    repeat(out, model.layer, model.depth);
    for (const Kernels& each : model.layers) put(out, each);
    put(out, model.head);
  }
  static void backward(LaunchStream& out, const StreamModel& model) {
    put(out, model.head_back);
    repeat(out, model.layer_back, model.depth);
    for (const Kernels& each : model.layers_back) put(out, each);
    put(out, model.embed_back);
  }
  static void optimize(LaunchStream& out, const StreamModel& model) {
    repeat(out, model.optimizer, model.parameters);
  }
  static void training_step(LaunchStream& out, const StreamModel& model, int micro) {
    for (int i = 0; i < micro; ++i) forward(out, model), backward(out, model);
    optimize(out, model);
    ++out.steps;
  }
  static void evaluation(LaunchStream& out, const StreamModel& model, int batches) {
    for (int i = 0; i < batches; ++i) forward(out, model), put(out, model.predict);
  }

  std::mt19937_64 random_;
  uint32_t next_ = 1000;
};

}  // namespace gpuprof::test
