// SPDX-License-Identifier: Apache-2.0
#include "formats/io/unfinished.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace gpuprof {

// Never freed: the handler may walk the list at any time. A process lists a few per output file.
struct Unfinished::Entry {
  const std::string path;
  Entry* next = nullptr;
  std::atomic<bool> listed{true};
};

namespace {

using Entry = Unfinished::Entry;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

std::atomic<Entry*> g_entries{nullptr};
std::atomic<bool> g_ending{false};  // a signal has come
std::atomic<bool> g_whole{false};   // a WholeOutput is alive
std::atomic<bool> g_kept{false};    // and all of it is there

Entry* list(const std::string& path) {
  auto* const entry = new Entry{path};
  entry->next = g_entries.load();
  while (!g_entries.compare_exchange_weak(entry->next, entry)) {
  }
  while (g_ending.load()) ::pause();  // another thread ends the process: nothing new is made
  return entry;
}

void remove_all(int signal) {
  if (g_kept.load()) return;
  g_ending.store(true);
  for (const Entry* entry = g_entries.load(); entry; entry = entry->next) {
    if (!entry->listed.load()) continue;
    if (::unlink(entry->path.c_str()) != 0) ::rmdir(entry->path.c_str());
  }
  ::_exit(128 + signal);
}

}  // namespace

void remove_unfinished_on_signals() {
  for (const int signal : kSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = remove_all;
    for (const int other : kSignals) sigaddset(&action.sa_mask, other);
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

Unfinished::Unfinished(const std::string& path) : entry_(list(path)) {}

void Unfinished::forget() { entry_->listed.store(false); }

void list_until_all_is_there(const std::string& path) {
  if (g_whole.load()) list(path);
}

WholeOutput::WholeOutput() { g_whole.store(true); }

WholeOutput::~WholeOutput() {
  if (g_kept.load()) return;
  g_whole.store(false);
  for (Entry* entry = g_entries.load(); entry; entry = entry->next) entry->listed.store(false);
}

void WholeOutput::keep() { g_kept.store(true); }

}  // namespace gpuprof
