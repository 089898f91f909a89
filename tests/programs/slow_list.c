// SPDX-License-Identifier: Apache-2.0
// Preloaded with the library: a thread named gpuprof that lists the loaded libraries holds the
// loader's lock for 20 ms, as where there are very many, or the machine is busy.
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef int (*Visit)(struct dl_phdr_info*, size_t, void*);
typedef int (*List)(Visit, void*);

struct Wrapped {
  Visit visit;
  void* context;
  int visited;
};

static int visit_slowly(struct dl_phdr_info* object, size_t size, void* context) {
  struct Wrapped* const wrapped = context;
  if (wrapped->visited++ == 0) usleep(20000);
  return wrapped->visit(object, size, wrapped->context);
}

int dl_iterate_phdr(Visit visit, void* context) {
  const List list = (List)dlsym(RTLD_NEXT, "dl_iterate_phdr");
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  struct Wrapped wrapped = {visit, context, 0};
  return strcmp(name, "gpuprof") == 0 ? list(visit_slowly, &wrapped) : list(visit, context);
}
