// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls a kernel while the matrix registers hold values that their owner wants saved: the "dormant"
// state of the Procedure Call Standard, in which TPIDR2_EL0 says where to save them.
//
// Built with -include of the header of a kernel `copy` that reads no neighbours. Exits with 0 if all were saved.

#include <string.h>

enum { MAX_BYTES = 256 };

typedef struct {
  void *buffer;
  uint16_t slices;
  uint16_t reserved[3];
} block;

// Loads a row of the matrix registers from memory and returns how many bytes one has.
uint64_t start_matrices(const unsigned char *rows);
void set_owner(block *);
block *owner(void);

__asm__(
    ".arch armv9-a+sme\n"
    "start_matrices: smstart za\n"
    "rdsvl x1, #1\n"
    "mov w12, wzr\n"
    "0: ldr za[w12, 0], [x0]\n"
    "add x0, x0, x1\n"
    "add w12, w12, #1\n"
    "cmp w12, w1\n"
    "b.ne 0b\n"
    "mov x0, x1\n"
    "ret\n"
    "set_owner: msr TPIDR2_EL0, x0\n"
    "ret\n"
    "owner: mrs x0, TPIDR2_EL0\n"
    "ret\n"
    ".arch armv8-a\n");

int main(void) {
  static unsigned char rows[MAX_BYTES * MAX_BYTES], saved[MAX_BYTES * MAX_BYTES];
  static double in[32][32], out[32][32];
  for (int i = 0; i < MAX_BYTES * MAX_BYTES; ++i) rows[i] = i * 37 + i / 251;
  for (int i = 0; i < 32 * 32; ++i) in[i / 32][i % 32] = i;
  const int64_t extents[] = {32, 32}, strides[] = {32};

  uint64_t bytes = start_matrices(rows);
  block wanted = {saved, (uint16_t)bytes, {0, 0, 0}};
  set_owner(&wanted);
  copy_sweep(&in[0][0], &out[0][0], extents, strides, strides);
  if (owner()) return 1;
  if (memcmp(in, out, sizeof in)) return 2;
  return memcmp(rows, saved, bytes * bytes) ? 3 : 0;
}
