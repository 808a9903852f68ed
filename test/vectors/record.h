// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Records what single GPU instructions do: registers, shared and global bytes before and after. Knows PTX text,
// registers and bytes, and no layout of any fragment, descriptor or tensor. test/vectors/README.md has the format of
// the result.
#ifndef TL_TEST_VECTORS_RECORD_H
#define TL_TEST_VECTORS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  REC_MAX_OPERANDS = 272,
  REC_MAX_RANK = 5,
  REC_SHARED_MAX = 48 * 1024 - 512,  // static shared memory, less barriers and map of the kernels
  REC_GLOBAL_MAX = 64 * 1024
};

// The arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col, by the numbers of cuda.h. Strides in bytes, of
// dimensions 1 and up.
typedef struct rec_map {
  uint32_t type, rank;
  uint64_t dims[REC_MAX_RANK], strides[REC_MAX_RANK];
  uint32_t box[REC_MAX_RANK], steps[REC_MAX_RANK];
  uint32_t interleave, swizzle, fill;
  bool is_im2col;  // takes the corners, of dimensions 1 to rank - 2, and the counts instead of the box
  int32_t lower[REC_MAX_RANK - 2], upper[REC_MAX_RANK - 2];
  uint32_t channels, pixels;
} rec_map;

// One execution. `name` and `signature` as in llvm_backend/device/device_ops.def, `body` PTX with $0, $1, … for results
// and then arguments; it may use the predicate %first (thread 0 of its block), the barrier objects `bar` and `bar2`,
// the buffer `buffer`, the tensor map [%map], and for a copy of it `map_copy` in global and `shared_map` in shared
// memory. `setting`: immediates that are not in the name, as "key=value …". Arguments are slots of 8 bytes, thread by
// thread; a pointer is an offset into `shared` or `global`. Blocks of one launch form one cluster; each has its own
// part of `shared`.
typedef struct rec_vector {
  const char *name, *signature, *body, *setting;
  uint32_t threads, blocks;  // 0: 32 and 1
  uint64_t *in, *out;        // blocks × threads × arguments (results)
  uint32_t shared_bytes, global_bytes;
  uint8_t *shared, *global;
  const rec_map *map;  // of `global`, or NULL
} rec_vector;

// Starts the file `name` of the output directory; the vectors that follow go there.
void rec_file(const char *name);
// Executes and appends to the file. in, shared and global are left as they were.
void rec_run(const rec_vector *vector);

// The device, or (without one) PTX text into a directory. rec_device.c
bool rec_device_open(const char *ptx_directory);
// False: refused, with the reason on stderr; lost: with it the use of the GPU in this process. Buffers are changed in
// place, slots as for rec_vector.
bool rec_device_run(const char *ptx, const rec_vector *vector, uint64_t *out, uint8_t *shared, uint8_t *global,
                    bool *out_lost);

// PTX text of the kernel for one vector; the caller frees it. rec_ptx.c
char *rec_ptx(const rec_vector *vector);
int rec_results(const char *signature);
int rec_arguments(const char *signature);
char rec_letter(const char *signature, int operand);  // results first
int rec_letter_bytes(char letter);

// Deterministic data. rec_data.c
typedef enum rec_type {
  REC_F64,
  REC_F32,
  REC_TF32,
  REC_F16,
  REC_BF16,
  REC_E4M3,
  REC_E5M2,
  REC_S32,
  REC_S8,
  REC_U8,
  REC_S4,
  REC_U4,
  REC_B1
} rec_type;
typedef enum rec_set {
  REC_SMALL,    // whole numbers of -3 … 3 (unsigned: 0 … 3): sums are exact in every accumulator
  REC_RANDOM,   // integers: all bits; floats: every mantissa, exponents of -3 … 3
  REC_SPECIAL,  // a quarter NaN, infinity, zeros, subnormals, largest and smallest; integers: the ends of the range
  REC_BITS      // all bits
} rec_set;
extern const char *const rec_type_names[];
extern const char *const rec_set_names[];
int rec_type_bits(rec_type type);
void rec_seed(const char *text, uint32_t index);  // what follows depends on these alone
uint64_t rec_random(void);
uint32_t rec_below(uint32_t bound);
uint64_t rec_value(rec_type type, rec_set set);  // the bits of one element
uint64_t rec_word(rec_type type, rec_set set);   // a register: 32 bits of packed elements, or one f64
void rec_fill(void *bytes, size_t count, rec_type type, rec_set set);

// The instructions, each into files of its own.
void rec_all_mma(void);
void rec_all_mma_sparse(void);
void rec_all_warp(void);
void rec_all_block(void);
void rec_all_mbarrier(void);
void rec_all_math(void);
void rec_all_memory(void);
void rec_all_wgmma(void);
void rec_all_tma(void);
void rec_all_tma_forms(void);
void rec_all_bulk(void);
void rec_all_scalar(void);
void rec_all_access(void);

#endif
