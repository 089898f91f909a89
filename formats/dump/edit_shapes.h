// SPDX-License-Identifier: Apache-2.0
// Adds to the shapes of lanes under construction what other chunks say of them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "formats/dump/lane_filler.h"

namespace gpuprof {

// `edit` gets each shape once for each chunk, and tells whether it has changed it. Parts of a chunk
// share theirs.
template <typename Edit>
void edit_shapes(Trace& trace, std::vector<OpenLane>& lanes, const Edit& edit) {
  using Shapes = std::shared_ptr<const std::vector<ShapeIndex>>;
  std::map<Shapes, Shapes> edited;
  for (OpenLane& lane : lanes) {
    for (LanePart& part : lane.parts) {
      const auto [at, fresh] = edited.emplace(part.shapes, part.shapes);
      if (fresh) {
        auto copy = std::make_shared<std::vector<ShapeIndex>>(*part.shapes);
        for (ShapeIndex& index : *copy) {
          Shape shape = trace.shapes[index];
          if (edit(shape)) index = trace.shapes.intern(shape);
        }
        at->second = std::move(copy);
      }
      part.shapes = at->second;
    }
  }
}

}  // namespace gpuprof
