// SPDX-License-Identifier: Apache-2.0
// The rows of apis.def as an enum and a table. No vendor header here.
#pragma once

#include <cstddef>

#include "collector/record/recorder.h"
#include "preload/original_names.h"

namespace gpuprof {

enum class Api : ApiId {
#define GPUPROF_API(library, symbol, role) symbol,
#define GPUPROF_API_AS(library, symbol, model, role) symbol,
#define GPUPROF_CALLBACK(library, symbol, role) symbol,
#define GPUPROF_HAND(library, symbol) symbol,
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
  count
};

inline constexpr size_t kApiCount = static_cast<size_t>(Api::count);
static_assert(kApiCount <= kMaxApis, "collector/record/recorder.h holds one flag byte per row");

inline constexpr ApiRow kApiRows[] = {
#define GPUPROF_API(library, symbol, role) \
  {#symbol, Library::library, kind_of(ApiRole::role), ApiRole::role},
#define GPUPROF_API_AS(library, symbol, model, role) \
  {#symbol, Library::library, kind_of(ApiRole::role), ApiRole::role},
#define GPUPROF_CALLBACK(library, symbol, role) \
  {#symbol, Library::library, kind_of(ApiRole::role), ApiRole::role},
#define GPUPROF_HAND(library, symbol) {#symbol, Library::library, Kind::none, ApiRole::none},
#include "preload/apis.def"
#undef GPUPROF_API
#undef GPUPROF_API_AS
#undef GPUPROF_CALLBACK
#undef GPUPROF_HAND
};
static_assert(sizeof(kApiRows) / sizeof(kApiRows[0]) == kApiCount);

// Row of a symbol; Api::count when it is not in the table.
Api find_api(const char* name);

}  // namespace gpuprof
