// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The manifest, ABI 1: everything a launcher must know about a compiled kernel. Written as leading "// " lines of the
// PTX, as X.json beside a cubin; read by runtime and harness without the compiler.
#ifndef TL_SUPPORT_MANIFEST_H
#define TL_SUPPORT_MANIFEST_H

#include "support/arena.h"
#include "support/dtype.h"
#include "support/status.h"
#include "support/strbuf.h"
#include "support/tensormap.h"

#define TL_MANIFEST_ABI 1

// An integer expression of dynamic names, num_sms and resident_blocks, in the syntax of the spec language:
// integers, names, + - * // %, min, max, ceildiv, comparisons, and/or/not. Evaluated in int64 with overflow checks.
typedef struct tl_mexpr tl_mexpr;

typedef enum tl_manifest_param_kind {
  TL_MPARAM_TENSOR,      // a device pointer
  TL_MPARAM_SCALAR,      // a scalar argument by value
  TL_MPARAM_DYNAMIC,     // a dynamic name: an i32, or (dtype) an i64
  TL_MPARAM_STRIDE,      // i64, a run-time stride (elements)
  TL_MPARAM_TENSOR_MAP,  // hidden: 128 bytes by value, align 64
  TL_MPARAM_WORKSPACE    // hidden: device memory
} tl_manifest_param_kind;

// How the launcher makes a tensor map: the parameters of cuTensorMapEncodeTiled, or of cuTensorMapEncodeIm2col, without
// interleave (NONE), and without element strides (1) of the former. Of a tensor without elements the map has the dims
// 1, strides 16 and other memory: 16 bytes that are zero for reading, and whatever for writing.
typedef struct tl_manifest_map {
  uint32_t tensor;  // of the kernel's params: whose memory it is
  bool is_written;  // else read
  tl_tensormap_type type;
  int32_t rank;
  const tl_mexpr *dims[TL_TENSORMAP_MAX_RANK];         // elements, innermost first
  const tl_mexpr *strides[TL_TENSORMAP_MAX_RANK - 1];  // bytes from one index of dimension 1, 2, … to the next
  uint32_t box[TL_TENSORMAP_MAX_RANK];                 // elements; im2col: channels, pixels, and 1 for each other dim
  bool is_im2col;                                      // dims are channels, W, H, D (as many as there are) and N
  int32_t lower[TL_TENSORMAP_MAX_RANK - 2], upper[TL_TENSORMAP_MAX_RANK - 2];  // im2col: corners of W, H, D
  int32_t step[TL_TENSORMAP_MAX_RANK - 2];  // im2col: elements from one base position to the next
  tl_tensormap_swizzle swizzle;
  tl_tensormap_l2 l2;
  tl_tensormap_fill fill;
} tl_manifest_map;

typedef struct tl_manifest_param {
  tl_manifest_param_kind kind;
  const char *name;
  tl_dtype dtype;
  int access;  // 0 in, 1 out, 2 inout
  int32_t rank;
  const tl_mexpr **dims;       // elements
  const tl_mexpr **strides;    // elements
  int64_t align;               // bytes
  bool is_optional;            // TENSOR: NULL stands for none
  int64_t divisor;             // DYNAMIC: known multiple, at least 1
  const tl_mexpr *bytes;       // WORKSPACE
  bool zero_each_launch;       // WORKSPACE
  const tl_manifest_map *map;  // TENSOR_MAP
} tl_manifest_param;

typedef struct tl_manifest_require {
  const tl_mexpr *condition;
  const char *text;  // as the author wrote it
} tl_manifest_require;

typedef struct tl_manifest_kernel {
  const char *name;  // the PTX entry
  const char *doc;
  tl_manifest_param *params;  // in the order of the entry's parameters
  uint32_t num_params;
  tl_manifest_require *requires_;
  uint32_t num_requires;
  const tl_mexpr *grid[3];  // blocks; a zero extent launches nothing
  bool persistent;          // blocks loop over tiles: any number of them in x is right, the grid says how many are best
  int32_t block_threads;
  int32_t math_threads;
  int64_t static_shared_bytes;
  int64_t dynamic_shared_bytes;
  int32_t cluster[3];  // 1 1 1 without clusters
  // Of the manifest's kernels: the version that is launched instead where the arguments have its divisors and
  // alignments, and its tensor maps can be made. 0: there is none. Versions stand behind all other kernels, and take
  // the same arguments.
  uint32_t aligned;
  bool is_version;
} tl_manifest_kernel;

// What a step of a chain gives one parameter of its kernel.
typedef enum tl_manifest_given_kind {
  TL_MGIVEN_ARGUMENT,  // memory of an argument of the chain
  TL_MGIVEN_BUFFER,    // memory of a buffer of the chain
  TL_MGIVEN_SCALAR,    // a scalar argument of the chain, passed on
  TL_MGIVEN_INT,       // a value; also of a dynamic param
  TL_MGIVEN_FLOAT
} tl_manifest_given_kind;

typedef struct tl_manifest_given {
  tl_manifest_given_kind kind;
  const char *name;          // the kernel's parameter
  uint32_t index;            // ARGUMENT, SCALAR: of the chain's params; BUFFER: of its buffers
  tl_dtype dtype;            // of memory, which may be viewed under another dtype and shape than it has
  int32_t rank;              //
  const tl_mexpr **dims;     // elements
  const tl_mexpr **strides;  // elements
  const tl_mexpr *value;     // INT
  double number;             // FLOAT
} tl_manifest_given;

typedef struct tl_manifest_step {
  uint32_t kernel;  // of the manifest's kernels
  tl_manifest_given *given;
  uint32_t num_given;
} tl_manifest_step;

// Memory that a chain needs between its steps: undefined until a step writes it.
typedef struct tl_manifest_buffer {
  const char *name;
  const tl_mexpr *bytes;
} tl_manifest_buffer;

// Kernels launched in order on one stream.
typedef struct tl_manifest_chain {
  tl_manifest_kernel signature;  // name, doc, params and requires as of a kernel; the rest says nothing
  tl_manifest_buffer *buffers;
  uint32_t num_buffers;
  tl_manifest_step *steps;
  uint32_t num_steps;
} tl_manifest_chain;

typedef struct tl_manifest {
  tl_arena *arena;  // Borrowed; holds everything.
  int abi;
  const char *generator;  // "tl-llc 0.1.0"
  const char *target;     // "sm_80"
  int ptx_version;        // 80 is 8.0
  tl_manifest_kernel *kernels;
  uint32_t num_kernels;
  tl_manifest_chain *chains;
  uint32_t num_chains;
} tl_manifest;

// Parses the expression; NULL with a status that quotes the place.
TL_MUST_USE tl_status tl_mexpr_parse(tl_arena *arena, tl_str text, const tl_mexpr **out);
const tl_mexpr *tl_mexpr_int(tl_arena *arena, int64_t value);
void tl_mexpr_print(const tl_mexpr *expr, tl_strbuf *out);
// How names of an expression are written in C.
typedef struct tl_mexpr_c_names {
  void (*print)(const char *name, void *user, tl_strbuf *out);
  void *user;
} tl_mexpr_c_names;
// The expression in C over int64_t, by the functions tlk_add, tlk_sub, … (a, b, &tlk_bad), which set `tlk_bad` where
// tl_mexpr_eval fails (harness/emit/launcher.h). A part without names is written as its value.
void tl_mexpr_print_c(const tl_mexpr *expr, const tl_mexpr_c_names *names, tl_strbuf *out);
bool tl_mexpr_is_int(const tl_mexpr *expr, int64_t *out);
// The name when the expression is a bare name, else NULL. Borrowed from the expression's arena.
const char *tl_mexpr_as_name(const tl_mexpr *expr);
// A name and its value, for evaluation.
typedef struct tl_mbinding {
  const char *name;
  int64_t value;
} tl_mbinding;
// Fails with INVALID_ARGUMENT on an unknown name, a division by zero or an overflow.
TL_MUST_USE tl_status tl_mexpr_eval(const tl_mexpr *expr, const tl_mbinding *bindings, size_t num_bindings,
                                    int64_t *out);

// Kernels without the versions of others, which stand behind them.
uint32_t tl_manifest_num_kernels(const tl_manifest *manifest);

// JSON (pretty, stable key order). With a non-NULL prefix every line starts with it ("// ").
void tl_manifest_write(const tl_manifest *manifest, const char *line_prefix, tl_strbuf *out);
// Reads JSON text, or the head of a PTX file. Refuses an ABI or a key that it does not know.
TL_MUST_USE tl_status tl_manifest_read(tl_arena *arena, tl_str text, tl_manifest *out);

#endif
