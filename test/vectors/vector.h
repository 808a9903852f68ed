// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Recorded vectors: reading them, and executing them in the emulator. README.md has the format.
#ifndef TL_TEST_VECTORS_VECTOR_H
#define TL_TEST_VECTORS_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/status.h"
#include "support/strbuf.h"
#include "support/tensormap.h"

enum { TV_MAX_SIGNATURE = 320 };

// Strings and bytes lie in the file's buffer.
typedef struct tv_vector {
  const char *name, *signature, *ptx, *setting;
  uint32_t threads, blocks;
  bool has_map;
  tl_tensormap_params map;
  const uint8_t *in, *out;  // packed: no gaps between operands or threads
  size_t in_bytes, out_bytes;
  const uint8_t *shared_before, *shared_after, *global_before, *global_after;  // NULL: none; after: unchanged
  size_t shared_bytes, global_bytes;                                           // shared: of all blocks
} tv_vector;

typedef struct tv_file {
  char *data, *at, *end;
} tv_file;

// Ends the program with a message when the file cannot be read.
tv_file tv_open(const char *path);
// False at the end of the file.
bool tv_next(tv_file *file, tv_vector *out);
void tv_close(tv_file *file);

int tv_results(const char *signature);
int tv_arguments(const char *signature);
char tv_letter(const char *signature, int operand);  // results first
int tv_letter_bytes(char letter);
// The number behind "key=" in the setting, or the value's text; `missing` when there is none.
long tv_setting(const tv_vector *vector, const char *key, long missing);
bool tv_setting_is(const tv_vector *vector, const char *key, const char *value);

// LLVM IR of a kernel @k that does what the recorder's kernel did. False: no operation of the emulator is known for it.
bool tv_write_kernel(const tv_vector *vector, tl_strbuf *out);

// Runs what the GPU ran, its PTX text, instead of IR of its own.
extern bool tv_via_ptx;

// What came out, packed as in the vector. Buffers of at least the vector's sizes.
typedef struct tv_result {
  uint8_t *out, *shared, *global;
} tv_result;
// UNSUPPORTED: the emulator does not have the operation. in: the vector's or others of that size.
TL_MUST_USE tl_status tv_execute(const tv_vector *vector, const uint8_t *in, tv_result *result);
void tv_execute_end(void);  // frees the kernel that is kept for the next vector

// Adds what was found to the statistics of vector->name; prints differences. False: the emulator differs.
bool tv_compare(const tv_vector *vector, const tv_result *result);
void tv_print_errors(void);
// The results of vectors that hold many instructions (rec_scalar.c, rec_access.c). compare_instructions.c
bool tv_compare_instructions(const tv_vector *vector, const tv_result *result);

#endif
