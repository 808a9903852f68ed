// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tile IR: types, values, ops, blocks and modules. Ops are defined in ops.def, attributes in attrs.def.
#ifndef TL_IR_IR_H
#define TL_IR_IR_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/layout/instruction.h"
#include "ir/layout/layout.h"
#include "support/arena.h"
#include "support/dtype.h"
#include "support/intern.h"
#include "support/source.h"

// ---- enumerations (enums.def)
#define TL_IR_ENUM_BEGIN(ID, c_name) typedef enum tl_##c_name {
#define TL_IR_ENUM_VALUE(ID, VALUE, text) TL_##ID##_##VALUE,
#define TL_IR_ENUM_END(ID) \
  TL_##ID##_COUNT          \
  }                        \
  tl_ir_enum_##ID;
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END
// The enumerations by number, for tables.
typedef enum tl_ir_enum {
#define TL_IR_ENUM_BEGIN(ID, c_name) TL_IR_ENUM_##ID,
#define TL_IR_ENUM_VALUE(ID, VALUE, text)
#define TL_IR_ENUM_END(ID)
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END
  TL_IR_ENUM_COUNT
} tl_ir_enum;

// Text of a value of an enumeration; NULL out of range. And back: -1 when unknown.
const char *tl_ir_enum_text(tl_ir_enum which, int value);
int tl_ir_enum_parse(tl_ir_enum which, tl_str text);

// ---- types: unique per module, compare by pointer
typedef enum tl_type_kind {
  TL_TYPE_NONE,
  TL_TYPE_INDEX,   // mathematical integer
  TL_TYPE_SCALAR,  // one element of `dtype` (bool is a predicate)
  TL_TYPE_BUFFER,  // memory: scope, dtype, dims (global: -1 where only known at launch)
  TL_TYPE_FLIGHT,  // what gemms in flight will have added up to: dtype, dims, layout as the tile that it becomes
  TL_TYPE_TILE,    // SSA tile spread over the block's registers: dtype, dims, layout once inferred
  TL_TYPE_RING,
  TL_TYPE_SLOT,      // an acquired or waited slot of a ring
  TL_TYPE_MBARRIER,  // mbarriers of one kind, one a stage
  TL_TYPE_MAP,       // a tensor map
  TL_TYPE_TOKEN      // a copy in flight
} tl_type_kind;

typedef struct tl_type {
  tl_type_kind kind;
  tl_dtype dtype;
  int scope;  // tl_scope, of buffers
  int32_t rank;
  int64_t dims[TL_MAX_RANK];  // elements
  const tl_layout *layout;    // tiles only; NULL until infer-layouts. Owned by the module.
} tl_type;

// ---- ops
typedef enum tl_opcode {
#define TL_OP(ID, text, levels, flags, regions, results, doc) TL_OP_##ID,
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
  TL_OPCODE_COUNT
} tl_opcode;

// Operand groups: TL_GROUP_COPY_src_limits is the position of the group in its op.
enum tl_operand_group {
  TL_GROUP_NONE = -1,
#define TL_OP(ID, text, levels, flags, regions, results, doc) TL_GROUP_BASE_##ID, TL_GROUP_RESET_##ID = -1,
#define TL_OPERAND(ID, group, kind, count) TL_GROUP_##ID##_##group,
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

typedef enum tl_attr_key {
#define TL_ATTR(KEY, text, kind) TL_ATTR_##KEY,
#define TL_ATTR_INT(KEY, text, least, most) TL_ATTR_##KEY,
#define TL_ATTR_INTS(KEY, text, least, most) TL_ATTR_##KEY,
#include "ir/attrs.def"
#undef TL_ATTR
#undef TL_ATTR_INT
#undef TL_ATTR_INTS
  TL_ATTR_COUNT
} tl_attr_key;

typedef enum tl_attr_kind {
  TL_ATTRKIND_UNIT,
  TL_ATTRKIND_INT,
  TL_ATTRKIND_STR,
  TL_ATTRKIND_INTS,
  TL_ATTRKIND_LAYOUT,
  TL_ATTRKIND_SWIZZLE,
  TL_ATTRKIND_INSTRUCTION,
  TL_ATTRKIND_DICT,
  TL_ATTRKIND_VALUE,
  TL_ATTRKIND_ENUM
} tl_attr_kind;

typedef struct tl_attr tl_attr;
struct tl_attr {
  tl_attr_key key;
  bool is_float;  // VALUE: which member holds the constant
  union {
    int64_t i;      // INT, ENUM, UNIT (1), VALUE
    double f;       // VALUE
    const char *s;  // STR. Owned by the module.
    struct {
      const int64_t *items;  // INTS. Owned by the module.
      int32_t len;
    } ints;
    const tl_layout *layout;         // LAYOUT
    const tl_shared_layout *shared;  // SWIZZLE
    const tl_instruction *inst;      // INSTRUCTION
    struct {
      const struct tl_dict_entry *entries;  // DICT. Owned by the module.
      int32_t len;
    } dict;
  } v;
};
// One entry of a DICT: a name with an integer, a text or a list of integers.
typedef struct tl_dict_entry {
  const char *name;
  tl_attr_kind kind;  // INT, STR or INTS
  int64_t i;
  const char *s;
  const int64_t *items;
  int32_t len;
} tl_dict_entry;

typedef struct tl_op tl_op;
typedef struct tl_block tl_block;
typedef struct tl_value tl_value;

// One operand: a use of a value, linked into the value's list of uses.
typedef struct tl_use {
  tl_value *value;
  tl_op *owner;
  struct tl_use *next;
  struct tl_use **link;  // what points at this use
} tl_use;

struct tl_value {
  const tl_type *type;
  tl_op *def;        // NULL for a block argument
  tl_block *block;   // of a block argument, else NULL
  uint32_t index;    // result or argument number
  uint32_t number;   // in its module, in order of making: what stands for the value where an order or a hash is needed
  const char *name;  // hint for the printer, or NULL. Owned by the module.
  tl_use *uses;
};

struct tl_op {
  tl_opcode code;
  tl_loc loc;
  tl_block *parent;
  tl_op *prev, *next;
  tl_use *operands;
  uint32_t num_operands;
  uint32_t *group_sizes;  // operands per group, in ops.def order
  tl_value *results;
  uint32_t num_results;
  tl_attr *attrs;  // sorted by key
  uint32_t num_attrs;
  uint32_t cap_attrs;
  tl_block **regions;  // one block each
  uint32_t num_regions;
};

struct tl_block {
  tl_op *parent;  // the op this is a region of
  tl_op *first, *last;
  tl_value **args;
  uint32_t num_args;
};

typedef struct tl_module {
  tl_arena arena;
  tl_strmap strings;                               // interned text
  tl_strmap types;                                 // printed type → tl_type
  tl_block *body;                                  // KERNEL ops
  int level;                                       // 0 tile level, 1 scheduled level: what the verifier allows
  uint32_t num_values;                             // made so far: the next value's number
  const struct tl_target *target;                  // Borrowed (static). May be NULL before the target is known.
  const tl_type *simple_types[TL_TYPE_TOKEN + 1];  // filled on first use
  const tl_type *scalar_types[TL_DTYPE_COUNT];
} tl_module;

// ---- op tables
typedef struct tl_operand_info {
  const char *name;
  enum {
    TL_OPERAND_INDEX,
    TL_OPERAND_SCALAR,
    TL_OPERAND_BOOL,
    TL_OPERAND_BUFFER,
    TL_OPERAND_TILE,
    TL_OPERAND_FLIGHT,
    TL_OPERAND_RING,
    TL_OPERAND_SLOT,
    TL_OPERAND_MBARRIER,
    TL_OPERAND_MAP,
    TL_OPERAND_TOKEN,
    TL_OPERAND_ANY
  } kind;
  enum { TL_COUNT_ONE, TL_COUNT_OPT, TL_COUNT_MANY } count;
} tl_operand_info;
typedef struct tl_opattr_info {
  tl_attr_key key;
  bool required;
} tl_opattr_info;
enum {
  TL_OPFLAG_PURE = 1,
  TL_OPFLAG_READ = 2,
  TL_OPFLAG_WRITE = 4,
  TL_OPFLAG_CONTROL = 8,
  TL_OPFLAG_TERMINATOR = 16,
  TL_OPFLAG_SYNC = 32,
  TL_OPFLAG_ONCE = 64
};
enum { TL_LEVEL_T = 1, TL_LEVEL_S = 2, TL_LEVEL_B = 3 };
typedef struct tl_op_info {
  const char *name;
  const char *doc;
  int levels;
  int flags;
  int num_regions;
  int num_results;  // -1: any
  const tl_operand_info *groups;
  int num_groups;
  const tl_opattr_info *attrs;
  int num_attrs;
} tl_op_info;
const tl_op_info *tl_op_info_of(tl_opcode code);
// TL_OPCODE_COUNT when unknown.
tl_opcode tl_opcode_parse(tl_str name);
const char *tl_attr_key_text(tl_attr_key key);
tl_attr_kind tl_attr_key_kind(tl_attr_key key);
// Enumeration behind an ENUM key.
tl_ir_enum tl_attr_key_enum(tl_attr_key key);
// What an INT key, or each element of an INTS key, is in a verified module.
void tl_attr_key_range(tl_attr_key key, int64_t *out_least, int64_t *out_most);

// ---- modules and types
tl_module *tl_module_create(void);
void tl_module_destroy(tl_module *module);
tl_module *tl_module_clone(const tl_module *module);
const char *tl_module_intern(tl_module *module, tl_str text);

const tl_type *tl_type_index(tl_module *module);
const tl_type *tl_type_scalar(tl_module *module, tl_dtype dtype);
const tl_type *tl_type_buffer(tl_module *module, int scope, tl_dtype dtype, const int64_t *dims, int32_t rank);
const tl_type *tl_type_tile(tl_module *module, tl_dtype dtype, const int64_t *dims, int32_t rank,
                            const tl_layout *layout);
// The type of a tile's content while gemms add to it, and the tile's type of one.
const tl_type *tl_type_flight(tl_module *module, const tl_type *tile);
const tl_type *tl_type_landed(tl_module *module, const tl_type *flight);
const tl_type *tl_type_simple(tl_module *module, tl_type_kind kind);  // those without parts
// The module's own copy of a type of any module.
const tl_type *tl_type_import(tl_module *module, const tl_type *type);
// Copies a layout into the module (equal layouts are shared).
const tl_layout *tl_module_layout(tl_module *module, const tl_layout *layout);
const tl_shared_layout *tl_module_shared_layout(tl_module *module, const tl_shared_layout *layout);
const tl_instruction *tl_module_instruction(tl_module *module, const tl_instruction *inst);
// Product of the dims; -1 when one is unknown or the product overflows.
int64_t tl_type_num_elements(const tl_type *type);

// ---- building. A builder inserts before `before`, or at the end of `block` when that is NULL, and gives every op
// `loc`.
typedef struct tl_builder {
  tl_module *module;
  tl_block *block;
  tl_op *before;
  tl_loc loc;
} tl_builder;

// `loc` becomes that of `op`, or of the op around `block`.
void tl_builder_at_end(tl_builder *builder, tl_module *module, tl_block *block);
void tl_builder_before(tl_builder *builder, tl_module *module, tl_op *op);
void tl_builder_after(tl_builder *builder, tl_module *module, tl_op *op);

// One group of operands for tl_build.
typedef struct tl_group {
  tl_value *const *values;
  uint32_t len;
} tl_group;
#define TL_GROUP_OF(...)                                                                            \
  (tl_group) {                                                                                      \
    (tl_value *const[]){__VA_ARGS__}, sizeof((tl_value *const[]){__VA_ARGS__}) / sizeof(tl_value *) \
  }
#define TL_GROUP_EMPTY ((tl_group){0})

// The general constructor: `groups` in ops.def order (num_groups of the op's info), regions are made empty.
tl_op *tl_build(tl_builder *builder, tl_opcode code, const tl_group *groups, const tl_type *const *results,
                uint32_t num_results);
// Shorthands; the result is the op's only result.
tl_value *tl_build_index(tl_builder *builder, int64_t value);
tl_value *tl_build_const_int(tl_builder *builder, const tl_type *type, int64_t value);
tl_value *tl_build_const_float(tl_builder *builder, const tl_type *type, double value);
// The scalar 0 of a dtype.
tl_value *tl_build_zero(tl_builder *builder, tl_dtype dtype);
tl_value *tl_build_bool(tl_builder *builder, bool value);
tl_value *tl_build_binary(tl_builder *builder, tl_opcode code, tl_value *a, tl_value *b);
tl_value *tl_build_unary(tl_builder *builder, tl_opcode code, tl_value *a);
tl_value *tl_build_cmp(tl_builder *builder, int pred, tl_value *a, tl_value *b);
tl_value *tl_build_select(tl_builder *builder, tl_value *condition, tl_value *a, tl_value *b);
tl_value *tl_build_cast(tl_builder *builder, tl_value *a, const tl_type *type);  // `a` itself when the type is right
tl_value *tl_build_math(tl_builder *builder, int function, tl_value *a);
// `bits`, a u32, for the stochastic rounding, else NULL.
tl_value *tl_build_cast_rounded(tl_builder *builder, int rounding, tl_value *a, tl_value *bits, const tl_type *type);
tl_value *tl_build_math2(tl_builder *builder, int function, tl_value *a, tl_value *b);
tl_op *tl_build_yield(tl_builder *builder, tl_value *const *values, uint32_t len);
tl_value *tl_block_add_arg(tl_module *module, tl_block *block, const tl_type *type, const char *name);

// Upper bound of a FOR that only its `while` ends.
// Of a TILE_QUEUE in shared memory.
#define TL_TILE_QUEUE_BYTES 48
#define TL_FOR_ENDLESS (INT64_C(1) << 62)

// ---- reading and changing ops
tl_value *tl_op_operand(const tl_op *op, uint32_t index);
// Group access by TL_GROUP_<OP>_<name>.
uint32_t tl_op_group_len(const tl_op *op, int group);
tl_value *tl_op_group_at(const tl_op *op, int group, uint32_t index);
// The single operand of a ONE or OPT group (NULL when an OPT is absent).
tl_value *tl_op_arg(const tl_op *op, int group);
void tl_op_set_operand(tl_op *op, uint32_t index, tl_value *value);
void tl_op_set_group(tl_module *module, tl_op *op, int group, tl_value *const *values, uint32_t len);
tl_value *tl_op_result(const tl_op *op, uint32_t index);
bool tl_op_has(const tl_op *op, tl_attr_key key);
const tl_attr *tl_op_attr(const tl_op *op, tl_attr_key key);            // NULL when absent
int64_t tl_op_int(const tl_op *op, tl_attr_key key, int64_t fallback);  // INT, ENUM, UNIT
const char *tl_op_str(const tl_op *op, tl_attr_key key);                // NULL when absent
const tl_layout *tl_op_layout(const tl_op *op, tl_attr_key key);
const tl_instruction *tl_op_instruction(const tl_op *op);  // INST; NULL when absent
// Tensor cores add products of 8-bit floats with fewer bits than f32 has: partial sums of at most TL_PROMOTED_K
// products are added up in f32, unless the author wants them fast.
enum { TL_PROMOTED_K = 128 };
bool tl_gemm_is_promoted(const tl_op *gemm);
// Whether the product adds to zeros.
bool tl_gemm_clears(const tl_op *gemm);
void tl_op_set_int(tl_module *module, tl_op *op, tl_attr_key key, int64_t value);
void tl_op_set_str(tl_module *module, tl_op *op, tl_attr_key key, tl_str value);
void tl_op_set_ints(tl_module *module, tl_op *op, tl_attr_key key, const int64_t *items, int32_t len);
void tl_op_set_layout(tl_module *module, tl_op *op, tl_attr_key key, const tl_layout *layout);
void tl_op_set_shared(tl_module *module, tl_op *op, tl_attr_key key, const tl_shared_layout *layout);
void tl_op_set_instruction(tl_module *module, tl_op *op, const tl_instruction *inst);  // INST
void tl_op_set_dict(tl_module *module, tl_op *op, tl_attr_key key, const tl_dict_entry *entries, int32_t len);
void tl_op_set_unit(tl_module *module, tl_op *op, tl_attr_key key);
void tl_op_set_attr(tl_module *module, tl_op *op, const tl_attr *attr);
void tl_op_remove_attr(tl_op *op, tl_attr_key key);
// Whether two attributes have the same key and value.
bool tl_attr_equal(const tl_attr *a, const tl_attr *b);
// Whether both ops have the same attributes with the same values.
bool tl_op_same_attrs(const tl_op *a, const tl_op *b);
// Constant behind a value: true when its def is a CONST with an integer (index, int, bool) value.
bool tl_value_const_int(const tl_value *value, int64_t *out);

void tl_value_replace_uses(tl_value *value, tl_value *with);
void tl_op_move_before(tl_op *op, tl_op *before);
void tl_op_move_to_end(tl_op *op, tl_block *block);
// Unlinks and drops uses of its operands; its results must have no uses left. Regions go with it.
void tl_op_erase(tl_op *op);
// Gives the op a new list of result types (old results must have no uses).
void tl_op_set_results(tl_module *module, tl_op *op, const tl_type *const *types, uint32_t len);
// Deep copy inserted at the builder, also from another module. `map` pairs old and new values (grows; seed it with
// replacements through tl_value_map_set). `items` is a hash table of `capacity` rows: go through the functions.
typedef struct tl_value_map {
  struct tl_value_pair {
    const tl_value *from;
    tl_value *to;
  } * items;
  size_t len, capacity;
} tl_value_map;
void tl_value_map_set(tl_value_map *map, const tl_value *from, tl_value *to);
tl_value *tl_value_map_get(const tl_value_map *map, tl_value *from);  // `from` itself when unmapped
void tl_value_map_fini(tl_value_map *map);
tl_op *tl_op_clone(tl_builder *builder, const tl_op *op, tl_value_map *map);

tl_op *tl_block_terminator(const tl_block *block);  // NULL when there is none
// The innermost op around `op` with this code, or NULL.
tl_op *tl_op_enclosing(const tl_op *op, tl_opcode code);
// Threads that the statements around an op are spread over: those of the role, else the kernel's math threads. 0 where
// the kernel does not say.
int32_t tl_op_threads_known(const tl_op *op);
// The same; where the kernel does not say, the 128 that choose-schedule would begin with.
int32_t tl_op_threads(const tl_op *op);
enum { TL_MAX_CLUSTER_DIMS = 3 };
// Blocks of a cluster; 1 without.
int64_t tl_kernel_cluster_blocks(const tl_op *kernel);
// Blocks of the cluster along a dim of the grid, and by how much their ranks differ.
int64_t tl_kernel_cluster_size(const tl_op *kernel, int64_t dim, int64_t *out_stride);
// The ROLES of the kernel; NULL: it has none.
const tl_op *tl_kernel_roles(const tl_op *kernel);
// Whether only the elected thread does anything in the block, as far as others can see. With `counts_waits`, once waits
// that every thread makes were its own.
bool tl_block_is_elected(const tl_block *block, bool counts_waits);
// Threads of a block of the kernel: of all its roles, or its math threads.
int32_t tl_kernel_block_threads(const tl_op *kernel);
// Registers that each thread begins with, all that MIN_BLOCKS blocks leave it (PTX ISA, .minnctapersm, setmaxnreg); 0
// where the kernel asks for no number of blocks.
int32_t tl_kernel_entry_registers(const tl_op *kernel);
// Whether `ancestor` is `op` or encloses it.
bool tl_op_is_inside(const tl_op *op, const tl_op *ancestor);
// The op that owns the memory of a buffer: through views, stages and ring slots. NULL for a block argument.
tl_op *tl_buffer_root(const tl_value *buffer);
// First KERNEL of the module, or NULL.
tl_op *tl_module_kernel(const tl_module *module);

// Pre-order walk over `op` and everything inside; the callback may erase the op it is given.
typedef void tl_walk_fn(tl_op *op, void *user);
void tl_walk(tl_op *op, tl_walk_fn *visit, void *user);
void tl_walk_module(tl_module *module, tl_walk_fn *visit, void *user);

#endif
