// SPDX-License-Identifier: Apache-2.0
// Hazard: file descriptors and limits. The program may close any descriptor, also ours, and use its
// number for a file of its own; it may have next to no descriptors, memory, file size or writable
// folder.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/programs/hazard.h"

static void limit(int resource, rlim_t value) {
  struct rlimit limits = {value, value};
  if (setrlimit((__rlimit_resource_t)resource, &limits) != 0) _exit(92);
}

// With 0, 1 and 2 closed our files must not end up there: the program's prints would go into them.
static int closed_standard(int argc, char** argv) {
  (void)argc, (void)argv;
  close(0), close(1), close(2);
  hazard_steps(4, 5);
  if (write(1, "stray", 5) != -1 || errno != EBADF) return 21;
  if (write(2, "stray", 5) != -1 || errno != EBADF) return 22;
  hazard_steps(4, 5);
  // The kernel gives the lowest number, so that a file which another thread opens may have one of
  // these for a moment; none may stay there.
  for (int expected = 0; expected < 3; ++expected) {
    int file, tries = 2000;
    while ((file = open("/dev/null", O_RDWR)) != expected && tries-- > 0) {
      close(file);
      usleep(1000);
    }
    if (file != expected) return 23;
  }
  return 20;
}

// Closes everything, opens files of its own on all low numbers and looks whether they stay its own.
static int close_all(int argc, char** argv) {
  (void)argc, (void)argv;
  enum { kFiles = 60 };
  int files[kFiles];
  char name[] = "/tmp/hazard-XXXXXX";
  hazard_steps(4, 5);
  close_range(3, ~0U, 0);
  for (int i = 0; i < kFiles; ++i) {
    strcpy(name, "/tmp/hazard-XXXXXX");
    files[i] = mkstemp(name);
    if (files[i] < 0 || write(files[i], "mine", 4) != 4) return 91;
    unlink(name);
  }
  hazard_steps(100, 5);
  usleep(1500000);  // longer than any periodic work waits
  int intact = 0, odd_flags = 0;
  for (int i = 0; i < kFiles; ++i) {
    struct stat status;
    char text[8] = "";
    intact += fstat(files[i], &status) == 0 && status.st_size == 4 &&
              pread(files[i], text, 8, 0) == 4 && memcmp(text, "mine", 4) == 0;
    odd_flags += fcntl(files[i], F_GETFD) != 0;
  }
  printf("files intact: %d of %d, closed or changed: %d\n", intact, kFiles, odd_flags);
  for (int i = 3; i < 1024; ++i) close(i);
  hazard_steps(2, 5);
  return 0;
}

static int few_descriptors(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_register_kernel();
  limit(RLIMIT_NOFILE, 3);
  hazard_steps(4, 5);
  printf("worked with 3 descriptors\n");
  return 0;
}

static int small_files(int argc, char** argv) {
  (void)argc, (void)argv;
  limit(RLIMIT_FSIZE, 65536);  // SIGXFSZ ends who writes more
  hazard_steps(4, 5);
  printf("worked with a file size limit\n");
  return 0;
}

static int small_files_later(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(4, 5);
  limit(RLIMIT_FSIZE, 512);
  hazard_steps(4, 5);
  printf("worked with a file size limit\n");
  return 0;
}

static int little_memory(int argc, char** argv) {
  (void)argc, (void)argv;
  char line[256];
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fgets(line, sizeof line, file) == NULL) return 91;
  fclose(file);
  pages = atol(line);
  limit(RLIMIT_AS, (rlim_t)pages * 4096 + (40u << 20));  // the simulator's needs, not a ring's
  hazard_steps(4, 5);
  printf("worked with little memory\n");
  return 0;
}

// As many mappings as a process may have (vm.max_map_count): neighbours that cannot become one.
static int no_mappings_later(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(4, 5);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  for (int access = PROT_READ; mmap(NULL, 4096, access, flags, -1, 0) != MAP_FAILED;) {
    access ^= PROT_WRITE;
  }
  for (int i = 0; i < 30; ++i) {
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    usleep(10000);
  }
  printf("worked with no more mappings\n");
  return 0;
}

static atomic_int g_done;

// How often the system refuses what a thread of the program's asks for.
static void* map_and_split(void* refused) {
  const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  while (!atomic_load(&g_done)) {
    char* const pages = mmap(NULL, 3 * 4096, access, flags, -1, 0);
    if (pages == MAP_FAILED) {
      ++*(long*)refused;
      continue;
    }
    if (mprotect(pages + 4096, 4096, PROT_NONE) != 0) ++*(long*)refused;
    munmap(pages, 3 * 4096);
  }
  return NULL;
}

// 300 short of the limit of mappings, which suffices for the program itself.
static int few_mappings_later(int argc, char** argv) {
  (void)argc, (void)argv;
  enum { kPages = 1 << 20, kSpare = 300 };
  hazard_steps(4, 5);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char* const area = mmap(NULL, kPages * 4096ul, PROT_NONE, flags, -1, 0);
  long at = 1, refused = 0;
  while (at < kPages && mprotect(area + at * 4096, 4096, PROT_READ) == 0) at += 2;
  for (int i = 0; i < kSpare / 2; ++i) mprotect(area + (at -= 2) * 4096, 4096, PROT_NONE);
  pthread_t thread;
  if (pthread_create(&thread, NULL, map_and_split, &refused) != 0) return 92;
  for (int i = 0; i < 200; ++i) {
    hazard_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    usleep(5000);
  }
  atomic_store(&g_done, 1);
  pthread_join(thread, NULL);
  printf("mappings refused: %ld\n", refused);
  return 0;
}

static int no_processes(int argc, char** argv) {
  (void)argc, (void)argv;
  limit(RLIMIT_NPROC, 0);  // no thread can be started (root is let off)
  hazard_steps(4, 5);
  printf("worked with no new threads\n");
  return 0;
}

static int unwritable_folder(int argc, char** argv) {
  (void)argc, (void)argv;
  if (chdir("/proc") != 0) return 91;  // not even root makes a file there
  hazard_steps(4, 5);
  printf("worked in a folder that cannot be written\n");
  return 0;
}

static int changes_folder(int argc, char** argv) {
  (void)argc, (void)argv;
  hazard_steps(2, 5);
  if (chdir("/") != 0) return 91;
  hazard_steps(2, 5);
  char path[64];
  printf("in %s\n", getcwd(path, sizeof path));
  return 0;
}

static int strict_umask(int argc, char** argv) {
  (void)argc, (void)argv;
  umask(0777);
  hazard_steps(4, 5);
  printf("umask %o\n", (unsigned)umask(0777));
  return 0;
}

int main(int argc, char** argv) {
  static const struct hazard_case cases[] = {
      {"closed_standard", closed_standard},
      {"close_all", close_all},
      {"few_descriptors", few_descriptors},
      {"small_files", small_files},
      {"small_files_later", small_files_later},
      {"little_memory", little_memory},
      {"no_mappings_later", no_mappings_later},
      {"few_mappings_later", few_mappings_later},
      {"no_processes", no_processes},
      {"unwritable_folder", unwritable_folder},
      {"chdir", changes_folder},
      {"umask", strict_umask},
  };
  return hazard_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
