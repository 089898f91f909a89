// SPDX-License-Identifier: Apache-2.0
// A program with a dl_iterate_phdr of its own, which finds libc's at its first call. So do Seastar
// and ClickHouse, for the sake of exceptions.
#include <dlfcn.h>
#include <link.h>

#include "hazard.h"

typedef int (*visitor)(struct dl_phdr_info*, size_t, void*);

int dl_iterate_phdr(visitor visit, void* data) {
  static int (*real)(visitor, void*) = NULL;
  if (real == NULL) real = (int (*)(visitor, void*))(size_t)dlsym(RTLD_NEXT, "dl_iterate_phdr");
  return real(visit, data);
}

static int count(struct dl_phdr_info* object, size_t size, void* counted) {
  (void)object, (void)size;
  ++*(int*)counted;
  return 0;
}

int main(void) {
  int objects = 0;
  dl_iterate_phdr(count, &objects);
  printf("several objects: %s\n", objects > 2 ? "yes" : "no");
  hazard_steps(5, 2);
  return 0;
}
