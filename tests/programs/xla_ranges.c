// SPDX-License-Identifier: Apache-2.0
// What XLA does with NVTX (tsl/profiler/lib/scoped_annotation.h, nvtx_utils.cc): who gets a domain
// "TSL" pushes ranges on it; who gets none keeps a stack of annotations for CUPTI, from which
// jax.profiler has the names of operations. Prints "nvtx" or "stack".
//   xla_ranges steps N             N executions of a module, each a launch and a wait
//   xla_ranges register N BYTES    N modules are compiled, each with a text of its own of so many
//                                  bytes. Prints "bounded" where the process grows by less than
//                                  100 MB for that, else by how much
#include <nvtx3/nvToolsExt.h>

#include "hazard.h"

static void execute(nvtxDomainHandle_t domain, nvtxStringHandle_t title) {
  if (domain != NULL) {
    nvtxEventAttributes_t event = {0};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = title;
    nvtxDomainRangePushEx(domain, &event);
  }
  hazard_launch(1, NULL);
  if (domain != NULL) nvtxDomainRangePop(domain);
  hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void compile(nvtxDomainHandle_t domain, int count, size_t bytes) {
  char* const text = malloc(bytes + 1);
  if (text == NULL) _exit(91);
  memset(text, 'x', bytes);
  text[bytes] = '\0';
  const long before = hazard_resident_kb();
  for (int i = 0; i < count; ++i) {
    snprintf(text + bytes - 12, 13, "%012d", i);
    (void)nvtxDomainRegisterStringA(domain, text);
  }
  const long grown_kb = hazard_resident_kb() - before;
  free(text);
  if (grown_kb < 100 * 1024) {
    printf("bounded\n");
  } else {
    printf("%ld KB\n", grown_kb);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = atoi(argv[2]);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("TSL");
  printf("%s\n", domain != NULL ? "nvtx" : "stack");
  hazard_register_kernel();
  if (argc > 3) compile(domain, count, strtoul(argv[3], NULL, 10));
  const nvtxStringHandle_t title = nvtxDomainRegisterStringA(
      domain,
      "XlaModule:#prefix=jit(train_step)/jit(main),hlo_module=jit_train_step,program_id=12#");
  for (int step = 0; step < (argc > 3 ? 3 : count); ++step) execute(domain, title);
  return 0;
}
