// SPDX-License-Identifier: Apache-2.0
// Registers PyTorch's own observers (at::addGlobalCallback) through the exported C++ names. PyTorch
// calls them at the begin and end of each operator, autograd node and record_function range, on the
// thread that runs it. The fields used here have been the same since 1.13. Before anything is
// recorded, one range of our own tries whether the process has these types.
#pragma once

#include <cstdint>

namespace gpuprof {

struct RecordFunction;  // at::RecordFunction

enum class OperatorScope : uint8_t { forward, backward, annotation };

// Called on PyTorch's threads. `end` gets each object that `begin` got, unless the process ends
// before.
struct OperatorObserver {
  void (*begin)(const RecordFunction& function, OperatorScope scope);
  void (*end)(const RecordFunction& function);
  bool with_inputs;  // of operators, for input_shapes()
};

enum class ObserveResult : uint8_t { observing, no_torch, unknown_torch };
// Tries whether the process has these types, if it has PyTorch and that has not been tried. On a
// thread of ours, so that a profiler of the program's, which observes its own threads, does not see
// the range.
void try_observers();
// From any thread. Idempotent; what is running already is not told of.
ObserveResult observe_operators(const OperatorObserver& observer);
void stop_observing_operators();
// libtorch_cpu, where the process has loaded it; else null.
void* torch_library();

// Only within OperatorObserver::begin.
const char* operator_name(const RecordFunction& function);
// Joins operators of the backward pass with those of the forward pass; negative: none.
int64_t operator_sequence(const RecordFunction& function);

}  // namespace gpuprof
