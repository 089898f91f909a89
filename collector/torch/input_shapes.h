// SPDX-License-Identifier: Apache-2.0
// Shapes and types of an operator's inputs, as PyTorch's own profiler writes them.
#pragma once

#include "collector/torch/record_function.h"
#include "formats/core/record.h"

namespace gpuprof {

// JSON arrays with an entry for each input: [[4,32],[],[64]] and ["float","Scalar","float"]. A list
// of tensors has an array of arrays, if it is the only list (from 2.6 on): [[[4,32],[2,32]],[]]. 0:
// not known, or longer than 4 KiB. Sizes are not known where one of the tensors has none in
// numbers.
struct InputShapes {
  StringId dims, types;
};

// Whether this PyTorch has functions for them that we know; says so once where not. From any
// thread.
bool input_shapes_are_known();
// Only within OperatorObserver::begin of an observer with inputs, when they are known.
InputShapes input_shapes(const RecordFunction& function);

}  // namespace gpuprof
