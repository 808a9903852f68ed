// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writing the LLVM IR of one vector's kernel. Values %a0, %a1, … are the arguments of the vector, %r0, %r1, … its
// results.
#ifndef TL_TEST_VECTORS_KERNEL_TEXT_H
#define TL_TEST_VECTORS_KERNEL_TEXT_H

#include "vector.h"

typedef struct tv_writer {
  const tv_vector *vector;
  tl_strbuf declarations, body;
  int temporaries;
} tv_writer;

// The type of a letter of device_ops.def.
const char *tv_type(char letter);
// "declare …", once.
void tv_declare(tv_writer *writer, const char *name, const char *signature);
// A call of a device op; `arguments` are values without their types, separated by commas. A result goes into `result`
// (a struct when there are several).
void tv_call(tv_writer *writer, const char *result, const char *name, const char *signature, const char *arguments);
// %r0 … from a result of tv_call.
void tv_unpack(tv_writer *writer, const char *result, const char *signature);

// Families of which a vector is more than one op. False: not theirs. text_hopper.c
bool tv_write_wgmma(tv_writer *writer);
bool tv_write_tma(tv_writer *writer);
bool tv_write_bulk(tv_writer *writer);
bool tv_write_cluster(tv_writer *writer);
bool tv_write_script(tv_writer *writer);

#endif
