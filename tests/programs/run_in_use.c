// SPDX-License-Identifier: Apache-2.0
// A process that does what each line on its standard input says, and answers each:
// tests/e2e/safety/test_keep.py looks at its run meanwhile. It ends with its input.
//   steps   two steps
//   fork    a child makes four steps, answers with its number, and stays; before the first step
//   close   closes every descriptor that it does not know
#include <signal.h>

#include "tests/programs/hazard.h"

static void answer(long number) {
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", number);
  if (write(1, text, (size_t)length) != length) _exit(91);
}

static void stay_as_child(void) {
  close(0);
  hazard_steps(4, 2);
  answer(getpid());
  close(1), close(2);  // whoever reads from the parent sees its end
  for (;;) pause();
}

int main(void) {
  char line[32];
  setvbuf(stdin, NULL, _IONBF, 0);
  signal(SIGCHLD, SIG_IGN);
  while (fgets(line, sizeof line, stdin) != NULL) {
    if (strcmp(line, "fork\n") == 0) {
      if (fork() == 0) stay_as_child();
      continue;
    }
    if (strcmp(line, "close\n") == 0) close_range(3, ~0U, 0);
    if (strcmp(line, "steps\n") == 0) hazard_steps(2, 2);
    answer(0);
  }
  return 0;
}
