/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a job with NCCL linked into the program, as PyTorch's USE_STATIC_NCCL does: nothing
   of it can be interposed, its NVTX ranges alone tell of its calls.

   usage: static_nccl ID_FILE [both | several]     environment: RANK, WORLD_SIZE
   both: the libnccl.so of the process is called, too, by dlsym: by the names that programs use, and
   by the one that NCCL keeps for interposers, which in turn calls one that programs use.
   several: two ranks of one more communicator are in this process. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 6 };

static void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "static_nccl: %s returned %d\n", what, result);
  exit(1);
}
#define CHECK(call) check(call, #call)

static int number(const char* name) {
  const char* text = getenv(name);
  return text ? atoi(text) : 0;
}

static ncclUniqueId shared_id(const char* path, int rank) {
  ncclUniqueId id;
  char part[4096];
  snprintf(part, sizeof part, "%s.part", path);
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&id));
    FILE* file = fopen(part, "wb");
    fwrite(&id, sizeof id, 1, file);
    fclose(file);
    rename(part, path);
  }
  FILE* file;
  while (!(file = fopen(path, "rb"))) usleep(1000);
  if (fread(&id, sizeof id, 1, file) != 1) exit(2);
  fclose(file);
  return id;
}

typedef ncclResult_t (*AllReduce)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t);
typedef ncclResult_t (*Bcast)(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
typedef ncclResult_t (*InitAll)(ncclComm_t*, int, const int*);

static void call_shared(void) {
  static void* library;
  static ncclComm_t own;
  if (!library) {
    library = dlopen("libnccl.so.2", RTLD_NOW);
    const int device = 0;
    CHECK(((InitAll)dlsym(library, "ncclCommInitAll"))(&own, 1, &device));
  }
  CHECK(
      ((AllReduce)dlsym(library, "ncclAllReduce"))(NULL, NULL, 111, ncclFloat, ncclSum, own, NULL));
  CHECK(((Bcast)dlsym(library, "ncclBcast"))(NULL, 112, ncclFloat, 0, own, NULL));
  CHECK(((Bcast)dlsym(library, "pncclBcast"))(NULL, 113, ncclFloat, 0, own, NULL));
}

/* Both ranks of a communicator in this process. */
static void call_several(void) {
  static ncclComm_t ranks[2];
  if (!ranks[0]) CHECK(ncclCommInitAll(ranks, 2, NULL));
  CHECK(ncclGroupStart());
  for (int i = 0; i < 2; ++i) {
    cudaSetDevice(i);
    CHECK(ncclAllReduce(NULL, NULL, 114, ncclFloat, ncclSum, ranks[i], NULL));
  }
  CHECK(ncclGroupEnd());
  for (int i = 1; i >= 0; --i) {
    cudaSetDevice(i);
    cudaDeviceSynchronize();
  }
}

int main(int argc, char** argv) {
  const int rank = number("RANK"), world = number("WORLD_SIZE");
  void (*const step)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_step");
  const ncclUniqueId id = shared_id(argv[1], rank);
  ncclComm_t job, half;
  CHECK(ncclCommInitRank(&job, world, id, rank));
  CHECK(ncclCommSplit(job, rank % 2, rank, &half, NULL));
  for (int i = 0; i < STEPS; ++i) {
    CHECK(ncclAllReduce(NULL, NULL, 1000, ncclFloat, ncclSum, job, NULL));
    CHECK(ncclReduceScatter(NULL, NULL, 10, ncclDouble, ncclMax, job, NULL));
    CHECK(ncclReduce(NULL, NULL, 20, ncclInt8, ncclMin, 1 % world, job, NULL));
    CHECK(ncclAllGather(NULL, NULL, 30, ncclHalf, job, NULL));
    CHECK(ncclBcast(NULL, 40, ncclFloat, world - 1, job, NULL));
    CHECK(ncclGroupStart());
    CHECK(ncclSend(NULL, 50, ncclFloat, (rank + 1) % world, job, NULL));
    CHECK(ncclRecv(NULL, 50, ncclFloat, (rank + world - 1) % world, job, NULL));
    CHECK(ncclGroupEnd());
    CHECK(ncclAllReduce(NULL, NULL, 60, ncclFloat, ncclAvg, half, NULL));
    if (argc > 2 && strcmp(argv[2], "both") == 0) call_shared();
    if (argc > 2 && strcmp(argv[2], "several") == 0) call_several();
    cudaDeviceSynchronize();
    if (step) step();
  }
  CHECK(ncclCommDestroy(half));
  CHECK(ncclCommDestroy(job));
  return 0;
}
