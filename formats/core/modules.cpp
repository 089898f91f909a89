// SPDX-License-Identifier: Apache-2.0
#include "formats/core/modules.h"

#include "formats/core/wire.h"

namespace gpuprof {

bool encode_modules(ByteBuffer& out, const ModuleRow* rows, size_t count,
                    const StringTable& strings) {
  const size_t start = out.size();
  WireWriter wire(out);
  for (size_t i = 0; i < count; ++i) {
    const ModuleRow& row = rows[i];
    if (row.ready != 1) continue;
    const size_t mark = wire.open(1);
    wire.uint(1, row.begin);
    wire.uint(2, row.end);
    wire.uint(3, row.bias);
    wire.text(4, strings.get(row.path));
    wire.text(5, strings.get(row.build_id));
    wire.uint(6, row.file_bytes);
    wire.uint(7, row.modified_ns);
    wire.close(mark);
  }
  if (!wire.ok()) out.truncate(start);
  return wire.ok();
}

}  // namespace gpuprof
