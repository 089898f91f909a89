// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuprof::test {

// Whether a sanitizer looks at this build. It asks what the code does, not how often that is right:
// of many streams of one kind a few are enough for it.
#ifdef GPUPROF_TEST_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace gpuprof::test
