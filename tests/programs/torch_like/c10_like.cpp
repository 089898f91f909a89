// SPDX-License-Identifier: Apache-2.0
// Of PyTorch's libc10 what says whether gradients are wanted.
namespace c10 {

static bool g_enabled = true;

struct GradMode {
  static bool is_enabled();
};

bool GradMode::is_enabled() { return g_enabled; }

}  // namespace c10

extern "C" void c10_like_want_gradients(int wanted) { c10::g_enabled = wanted != 0; }
