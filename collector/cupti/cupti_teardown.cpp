// SPDX-License-Identifier: Apache-2.0
#include "collector/cupti/cupti_teardown.h"

#include <unistd.h>

#include "collector/base/cancel_guard.h"
#include "collector/base/log.h"
#include "collector/base/os.h"
#include "collector/cupti/cupti_link.h"
#include "collector/cupti/cupti_sharing.h"
#include "collector/record/collector.h"
#include "collector/record/session.h"
#include "collector/sources/graphs.h"
#include "collector/sources/replayed_graphs.h"

namespace gpuprof {
namespace {

constexpr uint32_t kBearsGraphs = 24;  // CUPTI of CUDA 12.6
constexpr uint64_t kWaitNs = 1000000000;
constexpr unsigned kLookUs = 500;

}  // namespace

bool teardown_is_possible() {
  if (!session().config.cupti_teardown || !g_link.api.Finalize || g_link.is_subscriber() ||
      g_link.shared || g_link.context.version < kBearsGraphs || host_was_ever_at_cupti()) {
    return false;
  }
  const size_t graphs = live_graphs();
  if (graphs != 0) {
    log_line(LogLevel::debug, "CUPTI is not taken down: %zu CUDA graph%s", graphs,
             graphs == 1 ? " lives" : "s live");
  }
  return graphs == 0;
}

bool tear_down_cupti() {
  g_teardown.store(Teardown::wanted);
  const uint64_t begun = monotonic_ns();
  while (g_teardown.load() != Teardown::done) {
    const bool over = monotonic_ns() - begun > kWaitNs || cupti_is_asked_for();
    Teardown wanted = Teardown::wanted;
    if (over && g_teardown.compare_exchange_strong(wanted, Teardown::idle)) return false;
    ::usleep(kLookUs);
  }
  g_teardown.store(Teardown::idle);
  log_line(LogLevel::debug, "CUPTI is taken down (cuptiFinalize)");
  return true;
}

void on_exit_before_teardown() {
  if (any_capture() || live_graphs() != 0) return;
  Teardown wanted = Teardown::wanted;
  if (!g_teardown.compare_exchange_strong(wanted, Teardown::running)) return;
  const ErrnoGuard keep_errno;
  const CancelGuard goes_on;
  const BlockedScope blocked;
  g_link.api.Finalize();
  g_teardown.store(Teardown::done);
}

void forget_teardown() { g_teardown = Teardown::idle; }

}  // namespace gpuprof
