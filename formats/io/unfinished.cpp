// SPDX-License-Identifier: Apache-2.0
#include "formats/io/unfinished.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

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
// A signal ends the process while it works, and no more once the output is being put in place.
enum class Phase { working, ending, kept };
std::atomic<Phase> g_phase{Phase::working};

std::atomic<bool> g_whole{false};  // a WholeOutput is alive
std::mutex g_waiting_lock;
std::vector<std::pair<std::string, std::string>> g_waiting;  // finished files and their targets

// Another thread ends the process: nothing new is made.
void wait_if_ending() {
  while (g_phase.load() == Phase::ending) ::pause();
}

Entry* list(const std::string& path) {
  auto* const entry = new Entry{path};
  entry->next = g_entries.load();
  while (!g_entries.compare_exchange_weak(entry->next, entry)) {
  }
  wait_if_ending();
  return entry;
}

void remove_listed() {
  for (Entry* entry = g_entries.load(); entry; entry = entry->next) {
    if (!entry->listed.exchange(false)) continue;
    if (::unlink(entry->path.c_str()) != 0) ::rmdir(entry->path.c_str());
  }
}

void end_process(int signal) {
  Phase working = Phase::working;
  if (!g_phase.compare_exchange_strong(working, Phase::ending)) return;
  remove_listed();
  ::_exit(128 + signal);
}

}  // namespace

void on_ending_signals(void (*handler)(int)) {
  for (const int signal : kSignals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = handler;
    for (const int other : kSignals) sigaddset(&action.sa_mask, other);
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

void remove_unfinished_on_signals() { on_ending_signals(end_process); }

Unfinished::Unfinished(const std::string& path) : entry_(list(path)) {}

void Unfinished::forget() { entry_->listed.store(false); }

void list_until_all_is_there(const std::string& path) {
  if (g_whole.load()) list(path);
}

bool put_in_place(const std::string& finished, const std::string& target) {
  if (!g_whole.load()) return ::rename(finished.c_str(), target.c_str()) == 0;
  list(finished);
  const std::lock_guard<std::mutex> lock(g_waiting_lock);
  g_waiting.emplace_back(finished, target);
  return true;
}

WholeOutput::WholeOutput() { g_whole.store(true); }

WholeOutput::~WholeOutput() {
  g_whole.store(false);
  g_waiting.clear();
  remove_listed();
}

bool WholeOutput::keep(std::string& error) {
  Phase working = Phase::working;
  if (!g_phase.compare_exchange_strong(working, Phase::kept)) wait_if_ending();
  for (const auto& [finished, target] : g_waiting) {
    if (::rename(finished.c_str(), target.c_str()) == 0) continue;
    error = target + ": cannot be renamed into place: " + std::strerror(errno);
    return false;
  }
  for (Entry* entry = g_entries.load(); entry; entry = entry->next) entry->listed.store(false);
  return true;
}

}  // namespace gpuprof
