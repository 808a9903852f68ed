// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tables of ops, attributes and enumerations, made from ops.def, attrs.def and enums.def.
#include <string.h>

#include "ir/ir.h"
#include "ir/op_internal.h"

// ---- enumerations

// One array of texts per enumeration.
#define TL_IR_ENUM_BEGIN(ID, c_name) static const char *const texts_##ID[] = {
#define TL_IR_ENUM_VALUE(ID, VALUE, text) text,
#define TL_IR_ENUM_END(ID) \
  }                        \
  ;
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END

typedef struct enum_info {
  const char *const *texts;
  int count;
} enum_info;

static const enum_info enum_table[TL_IR_ENUM_COUNT] = {
#define TL_IR_ENUM_BEGIN(ID, c_name) [TL_IR_ENUM_##ID] = {texts_##ID, TL_##ID##_COUNT},
#define TL_IR_ENUM_VALUE(ID, VALUE, text)
#define TL_IR_ENUM_END(ID)
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END
};

const char *tl_ir_enum_text(tl_ir_enum which, int value) {
  if ((unsigned)which >= TL_IR_ENUM_COUNT || value < 0 || value >= enum_table[which].count) return NULL;
  return enum_table[which].texts[value];
}

int tl_ir_enum_parse(tl_ir_enum which, tl_str text) {
  if ((unsigned)which >= TL_IR_ENUM_COUNT) return -1;
  for (int i = 0; i < enum_table[which].count; i++) {
    if (tl_str_is(text, enum_table[which].texts[i])) return i;
  }
  return -1;
}

// ---- operand groups and attributes of ops

// The groups of all ops in one array, with an empty row in front of each op's first; GROUP_MARK_<op> is that row's
// position.
enum group_position {
#define TL_OP(ID, text, levels, flags, regions, results, doc) GROUP_MARK_##ID,
#define TL_OPERAND(ID, group, kind, count) GROUP_POSITION_##ID##_##group,
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};
static const tl_operand_info group_table[] = {
#define TL_OP(ID, text, levels, flags, regions, results, doc) {0},
#define TL_OPERAND(ID, group, kind, count) {#group, TL_OPERAND_##kind, TL_COUNT_##count},
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};
// How many there are of an op: one more than that are the bytes of groups_of_<op>.
struct groups_of_none {
  char mark;
#define TL_OP(ID, text, levels, flags, regions, results, doc) \
  }                                                           \
  ;                                                           \
  struct groups_of_##ID {                                     \
    char mark;
#define TL_OPERAND(ID, group, kind, count) char group;
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

// The same for attributes.
enum attr_position {
#define TL_OP(ID, text, levels, flags, regions, results, doc) ATTR_MARK_##ID,
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need) ATTR_POSITION_##ID##_##KEY,
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};
enum { NEED_REQ = 1, NEED_OPT = 0 };
static const tl_opattr_info attr_table[] = {
#define TL_OP(ID, text, levels, flags, regions, results, doc) {0},
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need) {TL_ATTR_##KEY, NEED_##need},
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};
struct attrs_of_none {
  char mark;
#define TL_OP(ID, text, levels, flags, regions, results, doc) \
  }                                                           \
  ;                                                           \
  struct attrs_of_##ID {                                      \
    char mark;
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need) char KEY;
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

// Names that ops.def uses for flags.
enum {
  PURE = TL_OPFLAG_PURE,
  READ = TL_OPFLAG_READ,
  WRITE = TL_OPFLAG_WRITE,
  CONTROL = TL_OPFLAG_CONTROL,
  TERMINATOR = TL_OPFLAG_TERMINATOR,
  SYNC = TL_OPFLAG_SYNC,
  ONCE = TL_OPFLAG_ONCE
};

// An op that reads or writes says what, and no other does.
enum { REACH_READ = READ, REACH_WRITE = WRITE, REACH_ATOMIC = READ | WRITE, REACH_NOTHING = READ | WRITE };
// clang-format off
enum { REACH_OF_NONE = 0
#define TL_OP(ID, text, levels, flags, regions, results, doc) }; enum { REACH_OF_##ID = 0
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#define TL_OPEFFECT(ID, group, kind) | REACH_##kind
#define TL_OPEFFECT_NONE(ID) | REACH_NOTHING
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};
// clang-format on
#define TL_OP(ID, text, levels, flags, regions, results, doc)                              \
  _Static_assert(REACH_OF_##ID == ((flags) & (READ | WRITE)), "the flags of '" text        \
                                                              "' and its rows of effects " \
                                                              "differ");
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR

static const tl_op_info op_table[TL_OPCODE_COUNT] = {
#define TL_OP(ID, text, op_levels, op_flags, op_regions, op_results, op_doc) \
  [TL_OP_##ID] = {.name = text,                                              \
                  .doc = op_doc,                                             \
                  .levels = TL_LEVEL_##op_levels,                            \
                  .flags = op_flags,                                         \
                  .num_regions = op_regions,                                 \
                  .num_results = op_results,                                 \
                  .groups = &group_table[GROUP_MARK_##ID] + 1,               \
                  .num_groups = sizeof(struct groups_of_##ID) - 1,           \
                  .attrs = &attr_table[ATTR_MARK_##ID] + 1,                  \
                  .num_attrs = sizeof(struct attrs_of_##ID) - 1},
#define TL_OPERAND(ID, group, kind, count)
#define TL_OPATTR(ID, KEY, need)
#include "ir/ops.def"
#undef TL_OP
#undef TL_OPERAND
#undef TL_OPATTR
};

const tl_op_info *tl_op_info_of(tl_opcode code) {
  return &op_table[code];
}

tl_opcode tl_opcode_parse(tl_str name) {
  for (int i = 0; i < TL_OPCODE_COUNT; i++) {
    if (tl_str_is(name, op_table[i].name)) return (tl_opcode)i;
  }
  return TL_OPCODE_COUNT;
}

bool tl_op_prints_bare(tl_opcode code) {
  const tl_op_info *info = &op_table[code];
  if (info->num_groups == 1) return true;
  enum { FEW = 3 };  // groups of ops whose optional last operand has its name
  for (int g = 0; g < info->num_groups; g++) {
    bool may_lack = g == info->num_groups - 1 && g >= FEW && info->groups[g].count == TL_COUNT_OPT;
    if (info->groups[g].count != TL_COUNT_ONE && !may_lack) return false;
  }
  return true;
}

// ---- attribute keys

// attrs.def writes the kind as UNIT, STR, … or ENUM_<enumeration>.
enum {
#define TL_IR_ENUM_BEGIN(ID, c_name) TL_ATTRKIND_ENUM_##ID = TL_ATTRKIND_ENUM,
#define TL_IR_ENUM_VALUE(ID, VALUE, text)
#define TL_IR_ENUM_END(ID)
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END
};
enum {
  ENUM_OF_UNIT = TL_IR_ENUM_COUNT,
  ENUM_OF_STR = TL_IR_ENUM_COUNT,
  ENUM_OF_LAYOUT = TL_IR_ENUM_COUNT,
  ENUM_OF_SWIZZLE = TL_IR_ENUM_COUNT,
  ENUM_OF_INSTRUCTION = TL_IR_ENUM_COUNT,
  ENUM_OF_DICT = TL_IR_ENUM_COUNT,
  ENUM_OF_VALUE = TL_IR_ENUM_COUNT,
#define TL_IR_ENUM_BEGIN(ID, c_name) ENUM_OF_ENUM_##ID = TL_IR_ENUM_##ID,
#define TL_IR_ENUM_VALUE(ID, VALUE, text)
#define TL_IR_ENUM_END(ID)
#include "ir/enums.def"
#undef TL_IR_ENUM_BEGIN
#undef TL_IR_ENUM_VALUE
#undef TL_IR_ENUM_END
};

static const struct key_info {
  const char *text;
  int kind;
  int which;
  int64_t least, most;  // of INT and INTS
} key_table[TL_ATTR_COUNT] = {
#define TL_ATTR(KEY, text, kind) [TL_ATTR_##KEY] = {text, TL_ATTRKIND_##kind, ENUM_OF_##kind, 0, 0},
#define TL_ATTR_INT(KEY, text, least, most) [TL_ATTR_##KEY] = {text, TL_ATTRKIND_INT, TL_IR_ENUM_COUNT, least, most},
#define TL_ATTR_INTS(KEY, text, least, most) [TL_ATTR_##KEY] = {text, TL_ATTRKIND_INTS, TL_IR_ENUM_COUNT, least, most},
#include "ir/attrs.def"
#undef TL_ATTR
#undef TL_ATTR_INT
#undef TL_ATTR_INTS
};

const char *tl_attr_key_text(tl_attr_key key) {
  return key_table[key].text;
}

tl_attr_kind tl_attr_key_kind(tl_attr_key key) {
  return (tl_attr_kind)key_table[key].kind;
}

void tl_attr_key_range(tl_attr_key key, int64_t *out_least, int64_t *out_most) {
  *out_least = key_table[key].least;
  *out_most = key_table[key].most;
}

tl_ir_enum tl_attr_key_enum(tl_attr_key key) {
  return (tl_ir_enum)key_table[key].which;
}
