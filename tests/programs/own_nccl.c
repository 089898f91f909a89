// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 with one communicator at a time, always at the same address. Its first call waits
// until another thread aborts it, as a watchdog does; what is asked about it afterwards is counted.
#include <stdatomic.h>
#include <unistd.h>

enum { kSuccess = 0, kInternalError = 3 };

typedef struct {
  char bytes[128];
} Id;

static struct { atomic_int dead, asked_dead, made; } g_only;

int ncclGetUniqueId(Id* id) {
  id->bytes[0] = (char)(1 + atomic_load(&g_only.made));
  return kSuccess;
}

int ncclCommInitRank(void** made, int ranks, Id id, int rank) {
  (void)ranks, (void)id, (void)rank;
  atomic_fetch_add(&g_only.made, 1);
  atomic_store(&g_only.dead, 0);
  *made = &g_only;
  return kSuccess;
}

int ncclAllReduce(const void* send, void* receive, size_t count, int type, int operation,
                  void* communicator, void* stream) {
  (void)send, (void)receive, (void)count, (void)type, (void)operation, (void)communicator;
  (void)stream;
  if (atomic_load(&g_only.made) > 1) return kSuccess;
  while (!atomic_load(&g_only.dead)) usleep(1000);
  usleep(100000);  // the call that aborts it ends before this one
  return kInternalError;
}

int ncclCommAbort(void* communicator) {
  (void)communicator;
  atomic_store(&g_only.dead, 1);
  return kSuccess;
}

static int asked(void) {
  if (atomic_load(&g_only.dead)) atomic_fetch_add(&g_only.asked_dead, 1);
  return kSuccess;
}
int ncclCommCount(void* communicator, int* count) {
  (void)communicator;
  *count = 2;
  return asked();
}
int ncclCommUserRank(void* communicator, int* rank) {
  (void)communicator;
  *rank = 0;
  return asked();
}
int ncclCommGetAsyncError(void* communicator, int* state) {
  (void)communicator;
  *state = kSuccess;
  return asked();
}

// As NCCLX up to 2.28 has them; NCCL's of these names have other arguments.
static unsigned long g_passed[9];

int ncclPutSignal(const void* buffer, unsigned long count, int type, int peer, unsigned long offset,
                  void* window, void* stream) {
  const unsigned long words[] = {(unsigned long)buffer, count,  (unsigned long)type,
                                 (unsigned long)peer,   offset, (unsigned long)window,
                                 (unsigned long)stream};
  for (int i = 0; i < 7; ++i) g_passed[i] = words[i];
  return kSuccess;
}
int ncclSignal(int peer, void* window, void* stream) {
  g_passed[0] = (unsigned long)peer;
  g_passed[1] = (unsigned long)window;
  g_passed[2] = (unsigned long)stream;
  return kSuccess;
}
unsigned long passed(int which) { return g_passed[which]; }

int asked_about_dead(void) { return atomic_load(&g_only.asked_dead); }
