// SPDX-License-Identifier: Apache-2.0
// Looks the functions of the NCCL up that it is told of, as vLLM does with VLLM_NCCL_SO_PATH, and
// then calls those of the one that it is linked to, as PyTorch does.
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
  char text[128];
} Id;

int ncclGetUniqueId(Id* id);
int ncclCommInitRank(void** communicator, int ranks, Id id, int rank);
int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                  void* communicator, void* stream);
int ncclCommDestroy(void* communicator);

int main(int count, char** arguments) {
  static const char* const names[] = {"ncclCommInitRank", "ncclAllReduce", "ncclCommDestroy"};
  void* const other = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!other) return puts(dlerror()), 90;
  void* found[3] = {NULL, NULL, NULL};
  for (int i = 3 - (count > 2 ? 1 : 3); i < 3; ++i) found[i] = dlsym(other, names[i]);
  Id id;
  void* communicator = NULL;
  char data[16];
  ncclGetUniqueId(&id);
  ncclCommInitRank(&communicator, 1, id, 0);
  ncclAllReduce(data, data, 16, 0, 0, communicator, NULL);
  ncclCommDestroy(communicator);
  if (found[0]) {
    ((int (*)(void**, int, Id, int))found[0])(&communicator, 1, id, 0);
    ((int (*)(const void*, void*, size_t, int, int, void*, void*))found[1])(data, data, 16, 0, 0,
                                                                            communicator, NULL);
    ((int (*)(void*))found[2])(communicator);
  }
  return 0;
}
