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

// The LLVM type of a letter of device_ops.def; m is the map.
const char *tv_type(char letter);
// "declare …", once.
void tv_declare(tv_writer *writer, const char *name, const char *signature);
// A call of a device op; `arguments` are values without their types, separated by commas. A result goes into `result`
// (a struct when there are several).
void tv_call(tv_writer *writer, const char *result, const char *name, const char *signature, const char *arguments);
// %r0 … from a result of tv_call.
void tv_unpack(tv_writer *writer, const char *result, const char *signature);

// "br": what follows, up to the end of the if, only where the i1 `condition` is true. They do not nest.
void tv_open_if(tv_writer *writer, const char *condition);
void tv_close_if(tv_writer *writer);
void tv_meet(tv_writer *writer);  // all threads of the cluster
// @bar, for one phase of `bytes` that arrive; all threads of the cluster have met after it.
void tv_put_expect(tv_writer *writer, const char *bytes);
// %r0: whether @bar's first phase is complete within a number of tries.
void tv_put_wait(tv_writer *writer);
void tv_put_wait_of(tv_writer *writer, const char *op);  // by another form of the wait
void tv_put_commit(tv_writer *writer);                   // a group of bulk stores, and the wait for it

// Families of which a vector is more than one op. False: not theirs. text_hopper.c, text_tma.c, text_block.c
bool tv_write_wgmma(tv_writer *writer);
bool tv_write_tma(tv_writer *writer);
bool tv_write_bulk(tv_writer *writer);
bool tv_write_cluster(tv_writer *writer);
bool tv_write_script(tv_writer *writer);
bool tv_write_arrivals(tv_writer *writer);
bool tv_write_block(tv_writer *writer);

#endif
