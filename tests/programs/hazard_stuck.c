// SPDX-License-Identifier: Apache-2.0
// While it is loaded, nobody else can open a library or look a function up: its constructor waits
// for as long as the process lives. It is opened by elsewhere.c.
#include <unistd.h>

__attribute__((constructor)) static void wait_for_ever(void) {
  char byte = 'x';
  const int said = write(STDOUT_FILENO, "in the constructor\n", 19) == 19;
  int ends[2];
  if (said && pipe(ends) == 0 && read(ends[0], &byte, 1) == 1) _exit(91);
}
