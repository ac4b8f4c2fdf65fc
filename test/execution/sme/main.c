// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a kernel of the included header on what it reads from the standard input: the extents of its
// output, the first and the last row to compute, and the input, halo included. Writes the output,
// whose rows are OUT_PADDING elements longer than they need be.
//
// Each array ends (with the argument "end") or begins ("begin") at a page that must not be touched.
// Built with -DSWEEP=NAME -DTYPE=double -DRANK=2 -DBEFORE={1,1} -DAFTER={1,1} -include x.h.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OUT_PADDING = 3 };

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static void *guarded(size_t bytes, int at_end) {
  size_t page = sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page + 2;
  char *memory = mmap(NULL, pages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  if (mprotect(memory + page, (pages - 2) * page, PROT_READ | PROT_WRITE)) fail("mprotect");
  return at_end ? memory + (pages - 1) * page - bytes : memory + page;
}

static int64_t count(const int64_t *extents) {
  int64_t product = 1;
  for (int a = 0; a < RANK; ++a) product *= extents[a];
  return product;
}

// The strides of a dense array on all axes but the last.
static void strides_of(const int64_t *extents, int64_t *strides) {
  int64_t stride = 1;
  for (int a = RANK - 1; a > 0; --a) strides[a - 1] = stride *= extents[a];
}

int main(int argc, char **argv) {
  static const int64_t before[RANK] = BEFORE, after[RANK] = AFTER;
  int at_end = argc > 1 && !strcmp(argv[1], "end");
  int64_t extents[RANK], rows[2], in_extents[RANK], out_extents[RANK];
  int64_t in_strides[RANK - 1], out_strides[RANK - 1];
  if (fread(extents, sizeof extents, 1, stdin) != 1 || fread(rows, sizeof rows, 1, stdin) != 1)
    fail("extents");
  for (int a = 0; a < RANK; ++a) {
    in_extents[a] = before[a] + extents[a] + after[a];
    out_extents[a] = extents[a] + (a == RANK - 1 ? OUT_PADDING : 0);
  }
  strides_of(in_extents, in_strides);
  strides_of(out_extents, out_strides);
  size_t in_count = count(in_extents), out_count = count(out_extents);
  TYPE *in = guarded(in_count * sizeof *in, at_end), *out = guarded(out_count * sizeof *out, at_end);
  if (fread(in, sizeof *in, in_count, stdin) != in_count) fail("input");
  for (size_t i = 0; i < out_count; ++i) out[i] = -77;

  const TYPE *first = in + before[RANK - 1];
  for (int a = 0; a < RANK - 1; ++a) first += before[a] * in_strides[a];
  SWEEP(first, out, extents, in_strides, out_strides, rows[0], rows[1]);
  return fwrite(out, sizeof *out, out_count, stdout) != out_count;
}
