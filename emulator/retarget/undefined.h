// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Follows content that nobody wrote (tl.undefined.*) through registers and memory, as MemorySanitizer does (Stepanov
// and Serebryany, 2015): beside each value that may depend on such content the retargeted module computes a *shadow*,
// whose set bits are those of the value that are undefined, and an *origin*, which register of which variable in which
// thread they come from. Where such a value matters the checker is told. Everything else of the module stays as it is,
// and a module in which no such content is left costs nothing. Private to retargeting.
#ifndef TL_EMULATOR_UNDEFINED_H
#define TL_EMULATOR_UNDEFINED_H

#include "emulator/retarget/retarget.h"

// The shadow has the shape of the value, with integers of the same size for floats and pointers. The origin is an i32
// (TL_EMU_ORIGIN_…). NULL until they are built.
// Of a variable of a thread they are memory: the shadow of its content, and an origin for each byte.
typedef struct undefined_value {
  LLVMValueRef key;  // NULL: a free slot
  LLVMValueRef shadow, origin;
} undefined_value;

typedef struct undefined_map {
  undefined_value *slots;  // Owned. Open addressing.
  size_t capacity, len;
} undefined_map;

typedef struct undefined undefined;
struct undefined {
  retarget *r;
  // Builds shadow and origin of a value that has none yet, and with them those of its operands: the one way from the
  // lower files, which ask for shadows, to undefined_values.c, which makes them.
  void (*build)(undefined *u, LLVMValueRef value);
  LLVMBuilderRef builder;   // where shadows are built now
  undefined_map values;     // that may be undefined
  undefined_map variables;  // of threads, whose content may be
  bool shared_may_be;       // some content of shared memory may be
  bool local_may_be;        // and what is stored to local memory of PTX
  // Of the current function:
  LLVMValueRef function;
  LLVMValueRef thread;                    // the thread's part of origins
  LLVMValueRef buffer;                    // for the shadow of an access to shared memory
  LLVMValueRef tell, load, store, where;  // what the runtime is called by
};

// ---- undefined_map.c
// The entry of a value that may be undefined, or NULL.
undefined_value *tl_emu_shadow_find(const undefined *u, LLVMValueRef value);
// The type of a shadow of values of `type`.
LLVMTypeRef tl_emu_shadow_type(undefined *u, LLVMTypeRef type);
// Adds a value, or a variable, that may be. False: it is there already.
bool tl_emu_shadow_add(undefined_map *map, LLVMValueRef value);
// Shadow and origin of any value, built where they are needed; a zero where it is defined.
LLVMValueRef tl_emu_shadow_value(undefined *u, LLVMValueRef value);
LLVMValueRef tl_emu_shadow_origin(undefined *u, LLVMValueRef value);
// The variable of a thread (an alloca) that `pointer` points into, or NULL; and its entry when its content may be
// undefined.
LLVMValueRef tl_emu_shadow_variable(LLVMValueRef pointer);
undefined_value *tl_emu_shadow_find_variable(const undefined *u, LLVMValueRef variable);

// ---- undefined_shapes.c
// i1: whether any bit is set.
LLVMValueRef tl_emu_shadow_any(undefined *u, LLVMValueRef shadow);
// All bits where `condition` (i1) holds, for a shadow of type `type`.
LLVMValueRef tl_emu_shadow_all_where(undefined *u, LLVMValueRef condition, LLVMTypeRef type);
// The bits of a shadow that is no struct as one integer, of whole bytes.
LLVMValueRef tl_emu_shadow_bits(undefined *u, LLVMValueRef shadow);
// The shadow of type `type` (of the value) with these bits.
LLVMValueRef tl_emu_shadow_from_bits(undefined *u, LLVMValueRef bits, LLVMTypeRef type);
// Origin of the first of `values` that is undefined.
LLVMValueRef tl_emu_shadow_first_origin(undefined *u, const LLVMValueRef *values, unsigned count);
// Origin of the first of an instruction's first `count` operands that is undefined.
LLVMValueRef tl_emu_shadow_origin_of_operands(undefined *u, LLVMValueRef instruction, unsigned count);
// Of an instruction whose operands are its first ones: element by element all bits where an operand has one; operands
// of another shape than the result, and results that are structs, as a whole.
LLVMValueRef tl_emu_shadow_elementwise(undefined *u, LLVMValueRef instruction, unsigned num_operands);

// Tells, before `instruction`, when `shadow` has a bit set and `condition` (i1; NULL: always) holds.
void tl_emu_shadow_sanitize(undefined *u, LLVMValueRef instruction, LLVMValueRef shadow, LLVMValueRef origin,
                            LLVMValueRef condition, const char *what);

// ---- undefined_calls.c
typedef enum undefined_call_kind {
  UNDEFINED_SOURCE,    // its result is undefined
  UNDEFINED_EXCHANGE,  // shfl: the shadow takes the same way as operand 1
  UNDEFINED_PAIR,      // two operands become the halves of the result, the second one the lower half
  UNDEFINED_WAIT,      // results are its operands
  UNDEFINED_COMPUTES,  // its result is undefined where an operand is
  UNDEFINED_USES       // its operands matter; what it gives is defined
} undefined_call_kind;
undefined_call_kind tl_emu_shadow_call_kind(LLVMValueRef call);
void tl_emu_shadow_build_call(undefined *u, LLVMValueRef call, LLVMValueRef *out_shadow, LLVMValueRef *out_origin);
// Tells of operands that matter.
void tl_emu_shadow_sanitize_call(undefined *u, LLVMValueRef call);

// ---- undefined_memory.c
void tl_emu_shadow_make_memory(undefined *u, LLVMValueRef variable, undefined_value *entry);
void tl_emu_shadow_load(undefined *u, LLVMValueRef load, LLVMValueRef *out_shadow, LLVMValueRef *out_origin);
void tl_emu_shadow_store(undefined *u, LLVMValueRef store);
bool tl_emu_shadow_is_copy(LLVMValueRef call);  // memcpy and memmove
// Fills and copies of memory.
void tl_emu_shadow_fill(undefined *u, LLVMValueRef call);

// ---- undefined_values.c
// The shadow and origin of an instruction that is no phi, at the builder's place behind it.
void tl_emu_shadow_build(undefined *u, LLVMValueRef instruction, LLVMValueRef *out_shadow, LLVMValueRef *out_origin);

#endif
