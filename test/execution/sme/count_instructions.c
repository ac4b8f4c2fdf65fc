// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A TCG plugin of qemu: how often each instruction between two addresses was executed.
//
//   qemu-aarch64 -plugin count.so,from=0x400000,to=0x400400,output=counts.txt PROGRAM
//
// writes one line "address count" for each instruction that was. The declarations are those parts
// of qemu's plugin interface that have stayed the same since its first version; qemu needs to be
// told which version is meant, so PLUGIN_VERSION is defined by whoever builds this.

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*at_exit)(qemu_plugin_id_t, void *);
typedef void (*at_translation)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*at_execution)(unsigned, void *);

void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, at_exit, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, at_translation);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, at_execution,
                                          enum qemu_plugin_cb_flags, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = PLUGIN_VERSION;

enum { INSTRUCTION_BYTES = 4 };

// A run of instructions that qemu translates, and executes, as a whole.
typedef struct block {
  struct block *next;
  uint64_t executions;
  size_t length;
  uint64_t addresses[];
} block;

static uint64_t from, to;
static const char *output;
static block *blocks;

static void count_execution(unsigned cpu, void *data) {
  (void)cpu;
  ++((block *)data)->executions;
}

static void keep_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
  (void)id;
  size_t total = qemu_plugin_tb_n_insns(tb);
  block *kept = calloc(1, sizeof *kept + total * sizeof kept->addresses[0]);
  if (!kept) abort();
  for (size_t i = 0; i < total; ++i) {
    uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i));
    if (from <= address && address < to) kept->addresses[kept->length++] = address;
  }
  if (kept->length == 0) {
    free(kept);
    return;
  }
  // The same instructions may be translated again: each translation counts for itself.
  kept->next = blocks;
  blocks = kept;
  qemu_plugin_register_vcpu_tb_exec_cb(tb, count_execution, QEMU_PLUGIN_CB_NO_REGS, kept);
}

static void write_counts(qemu_plugin_id_t id, void *data) {
  (void)id, (void)data;
  size_t length = (to - from) / INSTRUCTION_BYTES;
  uint64_t *counts = calloc(length + 1, sizeof *counts);
  FILE *file = fopen(output, "w");
  if (!counts || !file) abort();
  for (block *b = blocks; b; b = b->next)
    for (size_t i = 0; i < b->length; ++i)
      counts[(b->addresses[i] - from) / INSTRUCTION_BYTES] += b->executions;
  for (size_t i = 0; i < length; ++i)
    if (counts[i])
      fprintf(file, "%#" PRIx64 " %" PRIu64 "\n", from + i * INSTRUCTION_BYTES, counts[i]);
  if (fclose(file)) abort();
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                               char **argv) {
  (void)info;
  for (int i = 0; i < argc; ++i) {
    if (!strncmp(argv[i], "from=", 5)) from = strtoull(argv[i] + 5, NULL, 0);
    if (!strncmp(argv[i], "to=", 3)) to = strtoull(argv[i] + 3, NULL, 0);
    if (!strncmp(argv[i], "output=", 7)) output = argv[i] + 7;
  }
  if (!output || from >= to) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, keep_block);
  qemu_plugin_register_atexit_cb(id, write_counts, NULL);
  return 0;
}
