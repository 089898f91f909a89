// SPDX-License-Identifier: Apache-2.0
// The arguments of one event, understood: what has a field goes there, the rest is kept as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/kineto_reader/arg_keys.h"
#include "formats/kineto_reader/block.h"
#include "formats/kineto_reader/event_text.h"
#include "formats/kineto_reader/texts.h"

namespace gpuprof::kineto {

// What arguments say beside the fields of Shape and EventExtra.
struct Placement {
  std::optional<uint32_t> device, context, stream;
  bool no_stream = false;  // "stream": -1
  uint32_t correlation = 0;
  uint64_t external_id = 0;         // of calls and GPU work
  bool derived = false;             // it repeats what other events say
  std::optional<uint64_t> step_ns;  // a step, and its length
};

// Reads arguments into one block. Not thread-safe.
class ArgReader {
 public:
  ArgReader(Block& block, TextFaults& faults) : block_(block), faults_(faults) {}

  // Sets fields of `shape` (whose kind is set) and `extra`. What has none there and in `placement`
  // becomes shape.args if kernels or calls of the shape share it, else extra.args.
  void read(const std::vector<Member>& args, Shape& shape, EventExtra& extra, Placement& placement);

  // The text of a string value, as a number in the block's texts.
  uint32_t text(const Value& value);

 private:
  bool take(ArgKey key, const Value& value, Shape& shape, EventExtra& extra, Placement& out);
  bool take_of_gpu(ArgKey key, const Value& value, Shape& shape, EventExtra& extra, Placement& out);
  bool take_of_call(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                    Placement& out);
  bool take_of_operator(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                        Placement& out);
  bool take_origin(ArgKey key, const Value& value, Shape& shape);
  bool take_of_nvtx(ArgKey key, const Value& value, Shape& shape, EventExtra& extra);
  bool take_of_collective(ArgKey key, const Value& value, Shape& shape, EventExtra& extra);
  bool take_of_group(ArgKey key, const Value& value, Shape& shape);
  bool take_of_python(ArgKey key, const Value& value, EventExtra& extra);
  bool take_of_tensor(ArgKey key, const Value& value, Shape& shape, EventExtra& extra,
                      Placement& out);
  bool take_of_memory(ArgKey key, const Value& value, Shape& shape, Placement& out);
  bool make_memory_record(const Value& value, Shape& shape, EventExtra& extra, Placement& out);
  void keep_sequence(const std::vector<Member>& args, EventExtra& extra);
  static void keep(const Member& member, std::string& in);
  bool json(const Value& value, StringIndex& out);
  uint32_t args_text(std::string_view members);

  Block& block_;
  TextFaults& faults_;
  std::string rest_, rest_of_shape_, scratch_;
  // As in the file; and the same made sound, in the block's texts.
  TextPool raw_args_, raw_json_;
  std::vector<uint32_t> sound_args_, sound_json_;
};

}  // namespace gpuprof::kineto
