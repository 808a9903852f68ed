// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The spec model: what a YAML file says, parsed and located, before params are bound.
#ifndef TL_FRONTEND_SPEC_H
#define TL_FRONTEND_SPEC_H

#include "frontend/expr/expr.h"

typedef struct tl_named_expr {
  tl_str name;
  tl_loc loc;  // of the name
  tl_expr *value;
} tl_named_expr;

typedef enum tl_param_kind { TL_PARAM_VALUE, TL_PARAM_DYNAMIC, TL_PARAM_AUTO } tl_param_kind;
typedef struct tl_param {
  tl_str name;
  tl_loc loc;
  tl_param_kind kind;
  tl_expr *value;    // VALUE
  tl_expr *divisor;  // dynamic(16), or NULL
  bool is_wide;      // dynamic64
} tl_param;

// "[in|out|inout] dtype[dims] strides(…) align(n)"
typedef struct tl_arg {
  tl_str name;
  tl_loc loc;
  enum { TL_ARG_IN, TL_ARG_OUT, TL_ARG_INOUT } access;
  tl_expr *dtype;  // a NAME: a dtype or a param
  bool is_tensor;
  tl_expr **dims;
  uint32_t num_dims;
  tl_expr **strides;  // NULL when dense
  uint32_t num_strides;
  tl_expr *align;    // NULL: 16
  bool is_optional;  // it may be absent at a launch
  tl_loc type_loc;
} tl_arg;

// A tile of `shared`, `fragment` or `local`; one per declared name.
typedef struct tl_tile_decl {
  tl_str name;
  tl_loc loc;
  enum { TL_TILE_SHARED, TL_TILE_FRAGMENT, TL_TILE_LOCAL } scope;
  tl_expr *dtype;
  tl_expr **dims;
  uint32_t num_dims;  // 0: a local scalar
  tl_expr *stages;    // how many tiles the name stands for; NULL: one
  tl_expr *layout;    // pad(8), swizzle(128), row; or NULL
  tl_loc type_loc;
} tl_tile_decl;

// "mbarrier[depth] arrivals(n)" or "named arrivals(n)": barriers that the author arrives at and waits for.
typedef struct tl_barrier_decl {
  tl_str name;
  tl_loc loc;
  bool is_named;      // of the hardware's, which count warps
  tl_expr *depth;     // NULL: one
  tl_expr *arrivals;  // of each phase
} tl_barrier_decl;

// A view of the document (`views:`) or of a body (`view:`).
typedef struct tl_view {
  tl_str name;
  tl_loc loc;
  tl_str base;
  tl_loc base_loc;
  tl_expr *stage;  // which of the tiles that `base` stands for; else NULL
  tl_expr *dtype;  // NULL with a stage
  tl_expr **dims;
  uint32_t num_dims;
} tl_view;

typedef enum tl_stmt_kind {
  TL_STMT_CLEAR,      // target
  TL_STMT_FILL,       // target, option value
  TL_STMT_COPY,       // from, to; options pad via evict …
  TL_STMT_GEMM,       // assign: acc (=|+=) A @ B; options policy mma
  TL_STMT_PARALLEL,   // in, body; option where
  TL_STMT_PIPELINED,  // in, body; options stages specialize overlap order
  TL_STMT_FOR,        // in, body; options unroll order
  TL_STMT_UNROLL,     // in, body
  TL_STMT_IF,         // condition, body, else_body
  TL_STMT_WHILE,      // condition, body
  TL_STMT_BREAK,
  TL_STMT_CONTINUE,
  TL_STMT_EXIT,        // condition, or NULL: always
  TL_STMT_LET,         // lets
  TL_STMT_ATOMIC,      // from, to; options op into compare order
  TL_STMT_WAIT_UNTIL,  // condition
  TL_STMT_COMMIT_GROUP,
  TL_STMT_WAIT_GROUP,  // condition: how many groups may be in flight afterwards
  TL_STMT_PRINT,       // condition: the value; option message
  TL_STMT_ASSERT,      // condition; option message
  TL_STMT_ASSUME,      // condition
  TL_STMT_VIEW,        // view
  TL_STMT_ASSIGN,      // assign
  TL_STMT_SCAN,        // assign: c = cumsum(x, axis=0); options reverse exclusive
  TL_STMT_REDUCE,      // assign: m = max(S, axis=1); options accumulate keepdims nan
  TL_STMT_USE,         // use, macro, body: what it expands to
  TL_STMT_SYNC,        // target: a named barrier, or NULL: all of the role meet
  TL_STMT_WAIT_GEMM,   // condition: how many products may be in flight afterwards
  TL_STMT_ARRIVE,      // target: the barrier; options each bytes
  TL_STMT_WAIT,        // target: the barrier, condition: the parity of a phase
  TL_STMT_EXPECT,      // target: the barrier, condition: bytes
  TL_STMT_SPECIALIZE,  // body: of ROLE
  TL_STMT_ROLE         // role: its name, body; options warps registers
} tl_stmt_kind;

typedef struct tl_option {
  tl_str name;
  tl_loc loc;
  tl_expr *value;
  bool is_word;  // `value` is one of the option's choices and no expression
} tl_option;

typedef struct tl_macro tl_macro;
typedef struct tl_stmt tl_stmt;
typedef struct tl_stmt_list {
  tl_stmt **items;
  uint32_t len;
} tl_stmt_list;

struct tl_stmt {
  tl_stmt_kind kind;
  tl_loc loc;       // the key (or the whole assignment)
  tl_loc text_loc;  // the value behind the key
  tl_expr *target;
  tl_expr *from, *to;
  tl_assign assign;
  tl_in_clause in;
  tl_expr *condition;
  tl_named_expr *lets;
  uint32_t num_lets;
  tl_view view;
  tl_option *options;
  uint32_t num_options;
  tl_str role;          // ROLE: its name
  tl_expr *use;         // USE: a call of the macro
  tl_macro *macro;      // USE: what it names; NULL when that was reported
  tl_expr **arguments;  // USE: one for each param of the macro
  tl_stmt_list body, else_body;
};

// "name(params)": statements that `use` puts in its place, with arguments for the params.
struct tl_macro {
  tl_str name;
  tl_loc loc;  // of the name
  tl_str *params;
  tl_loc *param_locs;
  uint32_t num_params;
  tl_stmt_list body;  // as written: uses inside of it are not expanded
  bool is_included;   // it came with an `include`
  bool is_used;       // by the body of a kernel, if only through other macros
  bool is_broken;     // its head was reported: nothing is known of its parameters
  uint8_t visit;      // of the search for recursion
  uint8_t depth;      // how many macros deep it goes, itself counted
};
typedef struct tl_macro_list {
  tl_macro **items;
  uint32_t len;
  uint32_t capacity;
} tl_macro_list;

// A param override of a check or bench case. `value` may also be a dtype name or a bool.
typedef struct tl_case {
  tl_loc loc;
  tl_named_expr *overrides;  // params, or threads, persistent, fast_math, …
  uint32_t num_overrides;
  tl_named_expr *inputs;  // a case's own generators
  uint32_t num_inputs;
  tl_expr *rtol, *atol;  // a case's own tolerance, or NULL
} tl_case;

typedef struct tl_tolerance {
  tl_str output;  // empty: for all
  tl_expr *rtol, *atol;
  tl_loc loc;  // of the output's name, or of the whole section
} tl_tolerance;

// One line of a reference: an assignment, or a coupled recurrence {recur: t in 0:S, do: […]}.
typedef struct tl_reference_stmt {
  bool is_recur;
  tl_assign assign;  // target: NAME or INDEX whose subscripts are index names, `k in lo:hi` given through `ranges`
  tl_reduction_index *ranges;  // ranges given on the left side or by recur
  uint32_t num_ranges;
  struct tl_reference_stmt *body;
  uint32_t num_body;
  tl_loc loc;
} tl_reference_stmt;

typedef struct tl_check {
  bool present;
  tl_loc loc;
  tl_named_expr *inputs;  // generator calls; a NAME or LIST is a call without arguments
  uint32_t num_inputs;
  tl_reference_stmt *derive;
  uint32_t num_derive;
  tl_reference_stmt *reference;
  uint32_t num_reference;
  tl_tolerance *tolerances;
  uint32_t num_tolerances;
  tl_str *unchecked;
  tl_loc *unchecked_locs;
  uint32_t num_unchecked;
  tl_case *cases;
  uint32_t num_cases;
} tl_check;

typedef struct tl_bench {
  bool present;
  tl_loc loc;
  tl_expr *flops, *bytes;  // or NULL
  tl_case *cases;
  uint32_t num_cases;
} tl_bench;

// A param (or `threads`, `fast_math`, …) and the values that it is tried with.
typedef struct tl_tune_param {
  tl_str name;
  tl_loc loc;
  tl_expr **values;
  uint32_t num_values;
} tl_tune_param;

// The largest number of configurations that the lists may make.
#define TL_TUNE_MAX_CONFIGURATIONS 65536u

typedef struct tl_tune {
  bool present;
  tl_loc loc;
  tl_tune_param *params;
  uint32_t num_params;
  tl_expr **where;  // conditions that every configuration meets
  uint32_t num_where;
  tl_expr *budget;  // how many configurations are tried; NULL: all
} tl_tune;

typedef struct tl_kernel_spec tl_kernel_spec;

// A tensor that a chain keeps between its steps (`buffers:`): dense, undefined until a step writes it.
typedef struct tl_buffer_decl {
  tl_str name;
  tl_loc loc;
  tl_expr *dtype;
  tl_expr **dims;
  uint32_t num_dims;
  tl_loc type_loc;
} tl_buffer_decl;

// One step of a chain: `kernel(arg, …, param=value)`.
typedef struct tl_step {
  tl_expr *call;                 // a CALL; its text is the name
  const tl_kernel_spec *kernel;  // Borrowed from the spec. A kernel or another chain; NULL after an error
} tl_step;

// What a chain has in place of grid, tiles and body.
typedef struct tl_chain_spec {
  tl_buffer_decl *buffers;
  uint32_t num_buffers;
  tl_view *views;  // of arguments and of buffers
  uint32_t num_views;
  tl_step *steps;
  uint32_t num_steps;
} tl_chain_spec;

// A document: a kernel or, with `chain`, a chain of kernels.
struct tl_kernel_spec {
  tl_str name;
  tl_loc loc;  // of the name
  tl_str doc;
  tl_str target;  // empty when absent
  tl_loc target_loc;
  tl_param *params;
  uint32_t num_params;
  tl_named_expr *lets;
  uint32_t num_lets;
  tl_arg *args;
  uint32_t num_args;
  tl_view *views;  // of arguments
  uint32_t num_views;
  tl_expr **requires_;  // and what `assume` says of params and lets alone
  uint32_t num_requires;
  tl_expr **assumptions;  // of arguments
  uint32_t num_assumptions;
  tl_named_expr *grid;
  uint32_t num_grid;
  tl_named_expr *cluster;  // grid index: how many neighbours along it are one cluster
  uint32_t num_cluster;
  tl_expr *threads;       // NULL or the NAME auto: the compiler's choice
  tl_expr *occupancy;     // NULL or the NAME auto: the compiler's choice
  tl_expr *persistent;    // NULL: auto
  tl_expr *fast_math;     // NULL: false
  tl_expr *raster_panel;  // NULL: the compiler's choice
  tl_str raster_order;    // "row" (default) or "column"
  tl_tile_decl *tiles;
  uint32_t num_tiles;
  tl_barrier_decl *barriers;
  uint32_t num_barriers;
  tl_macro_list macros;  // this kernel's own
  tl_stmt_list body;
  tl_chain_spec *chain;  // NULL: a kernel
  tl_check check;
  tl_bench bench;
  tl_tune tune;
};

typedef struct tl_spec {
  tl_arena arena;
  tl_kernel_spec *kernels;  // and chains, in the order of the file
  uint32_t num_kernels;
  tl_macro_list macros;  // of the file: from documents without `kernel`, and what they include
} tl_spec;

// The largest spec: what tl_sources_read should refuse beyond.
#define TL_SPEC_MAX_BYTES (16u << 20)

// A file that a spec includes, as a loader gives it. Borrowed from the loader until tl_spec_parse_with returns.
typedef struct tl_spec_include {
  const char *name;  // what messages call it; the same name is the same file
  tl_str text;
} tl_spec_include;

// Finds files for `include`.
typedef struct tl_spec_loader {
  // `path` as written in the file that messages call `from`. NULL and `out`, or why there is no such file (a text that
  // follows "cannot include `path`: ").
  const char *(*load)(void *user, const char *path, const char *from, tl_spec_include *out);
  void *user;
} tl_spec_loader;

// Parses a file's documents, reads what they include and expands the macros. Everything the language has is parsed and
// checked for syntax; what later versions compile (clusters, …) is refused by name. Reports in `diags`; returns
// NULL only when nothing usable is left. Limits: 16 MiB of text, 100 000 nodes, 64 levels, 1 MiB a scalar, no aliases.
// `include` reads files beside the one that names them; a source that is no file of tl_sources_read cannot include.
// Included files and expansions of macros become further sources.
tl_spec *tl_spec_parse(tl_sources *sources, uint32_t source, tl_diags *diags);
// The same with files found by `loader`; NULL: as tl_spec_parse.
tl_spec *tl_spec_parse_with(tl_sources *sources, uint32_t source, const tl_spec_loader *loader, tl_diags *diags);
// Reads a spec's file ("-": standard input) for tl_spec_parse. A file over TL_SPEC_MAX_BYTES is a diagnostic (status
// DIAGNOSTICS) like every other limit; other failures as of tl_sources_read.
TL_MUST_USE tl_status tl_spec_read(tl_sources *sources, const char *path, tl_diags *diags, uint32_t *out_source);
void tl_spec_destroy(tl_spec *spec);
const tl_kernel_spec *tl_spec_find(const tl_spec *spec, tl_str name);
// The parsed spec as canonical text, for --emit=ast.
void tl_spec_print(const tl_spec *spec, tl_strbuf *out);

#endif
