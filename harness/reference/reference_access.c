// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elements of the reference's buffers: bounds, addresses, loads and stores.
#include "harness/reference/reference_calls.h"
#include "harness/reference/reference_internal.h"

int tl_ref_buffer_number(const tl_ref_code *code, tl_str name) {
  for (size_t i = 0; i < code->reference->buffers.len; i++) {
    if (name.len > 0 && tl_str_equal(code->reference->buffers.items[i]->name, name)) return (int)i;
  }
  return -1;
}

static tl_ref_value constant_true(void) {
  return (tl_ref_value){.kind = TL_REF_BOOL, .text = "true"};
}

// in bounds so far AND 0 <= subscript < dim.
static tl_ref_value validate_bound(tl_ref_code *code, tl_ref_value so_far, const tl_ref_value *subscript, int64_t dim) {
  if (subscript->has_range && subscript->lo >= 0 && subscript->hi < dim) return so_far;
  // One unsigned comparison: a negative subscript is huge.
  tl_ref_value one = tl_ref_op(code, TL_REF_BOOL, "icmp ult i64 %s, %lld", subscript->text, (long long)dim);
  if (so_far.text[0] == 't') return one;
  return tl_ref_op(code, TL_REF_BOOL, "and i1 %s, %s", so_far.text, one.text);
}

// Whether an index counts upwards in the subscript: then a larger extent may reach the tensor, as `Y[i - 1]` does from
// the second element on, and a negative range is the doing of this case's sizes.
static bool counts_up(const tl_ref_code *code, const tl_expr *expr, bool negated) {
  if (expr->kind == TL_EXPR_NAME) return !negated && tl_ref_find_index(code, expr->text);
  if (expr->kind == TL_EXPR_UNARY && expr->op == TL_EXPR_OP_NEG) return counts_up(code, expr->operands[0], !negated);
  bool is_sub = expr->kind == TL_EXPR_BINARY && expr->op == TL_EXPR_OP_SUB;
  if (is_sub || (expr->kind == TL_EXPR_BINARY && expr->op == TL_EXPR_OP_ADD))
    return counts_up(code, expr->operands[0], negated) || counts_up(code, expr->operands[1], negated != is_sub);
  // Of other operations nothing is known: with an index in them they may grow.
  return tl_ref_names_index(code, expr);
}

static void warn_negative(const tl_ref_code *code, tl_loc loc, const tl_reference_buffer *buffer, tl_str name,
                          uint32_t dim) {
  tl_diags *diags = code->reference->diags;
  tl_diag *diag = tl_diag_report(diags, TL_DIAG_ALWAYS_OUTSIDE, loc, "the index of dim %u of '%.*s' is always negative",
                                 dim, TL_STR_ARG(name));
  tl_diag_add_hint(diags, diag, "subscripts do not count from the end: the last element is %lld",
                   (long long)buffer->dims[dim] - 1);
}

bool tl_ref_emit_address(tl_ref_code *code, const tl_expr *access, tl_ref_address *out) {
  tl_str name = tl_ref_base_name(access);
  int number = tl_ref_buffer_number(code, name);
  if (number < 0) {
    tl_ref_error(code, access->loc, "`%.*s` is no argument and no earlier result", TL_STR_ARG(name));
    return false;
  }
  const tl_reference_buffer *buffer = code->reference->buffers.items[number];
  uint32_t given = access->kind == TL_EXPR_INDEX ? access->num_subscripts : 0;
  if (given != (uint32_t)buffer->rank) {
    tl_ref_error(code, access->loc, "`%.*s` has %d dims, given %u subscripts", TL_STR_ARG(name), buffer->rank, given);
    return false;
  }
  *out =
      (tl_ref_address){.buffer = number, .offset = tl_ref_const_int(0), .in_bounds = constant_true(), .info = buffer};
  for (uint32_t d = 0; d < given; d++) {
    const tl_subscript *subscript = &access->subscripts[d];
    if (subscript->kind != TL_SUBSCRIPT_ELEMENT) {
      tl_ref_error(code, subscript->loc, "a subscript of index notation is one element, not a slice");
      return false;
    }
    tl_ref_value value;
    if (!tl_ref_emit_int(code, subscript->lo, &value)) return false;
    if (value.has_range && value.hi < 0 && !counts_up(code, subscript->lo, false))
      warn_negative(code, subscript->lo->loc, buffer, name, d);
    out->in_bounds = validate_bound(code, out->in_bounds, &value, buffer->dims[d]);
    if (d == 0) {
      out->offset = value;
    } else {
      // Wrapping arithmetic: far out-of-bounds subscripts may overflow, and are not used then.
      tl_ref_value scaled =
          tl_ref_op(code, TL_REF_INT, "mul i64 %s, %lld", out->offset.text, (long long)buffer->dims[d]);
      out->offset = tl_ref_op(code, TL_REF_INT, "add i64 %s, %s", scaled.text, value.text);
    }
  }
  if (out->in_bounds.text[0] != 't') {
    out->offset = tl_ref_op(code, TL_REF_INT, "select i1 %s, i64 %s, i64 0", out->in_bounds.text, out->offset.text);
  }
  return true;
}

static const char *element_type(const tl_reference_buffer *buffer) {
  return buffer->is_float ? "double" : "i64";
}

bool tl_ref_emit_load(tl_ref_code *code, const tl_expr *access, const tl_expr *otherwise, tl_ref_value *out) {
  tl_ref_address address;
  if (!tl_ref_emit_address(code, access, &address)) return false;
  int kind = address.info->is_float ? TL_REF_FLOAT : TL_REF_INT;
  const char *type = element_type(address.info);
  tl_ref_value pointer = tl_ref_op(code, TL_REF_INT, "getelementptr inbounds %s, ptr %%buf%d, i64 %s", type,
                                   address.buffer, address.offset.text);
  *out = tl_ref_op(code, kind, "load %s, ptr %s", type, pointer.text);
  if (address.in_bounds.text[0] != 't') {
    tl_ref_value other = address.info->is_float ? tl_ref_const_float(0) : tl_ref_const_int(0);
    if (otherwise) {
      if (!tl_ref_emit(code, otherwise, &other)) return false;
      // A float beside an integer tensor makes the result a float.
      if (kind == TL_REF_INT && other.kind == TL_REF_FLOAT) {
        *out = tl_ref_to_float(code, *out);
        kind = TL_REF_FLOAT;
        type = "double";
      }
      other = kind == TL_REF_FLOAT ? tl_ref_to_float(code, other) : tl_ref_to_int(code, other);
    }
    *out =
        tl_ref_op(code, kind, "select i1 %s, %s %s, %s %s", address.in_bounds.text, type, out->text, type, other.text);
  }
  out->dtype = address.info->dtype;
  if (address.info->dtype == TL_DTYPE_BOOL) *out = tl_ref_to_bool(code, *out);
  return true;
}

void tl_ref_emit_store(tl_ref_code *code, const tl_ref_address *address, tl_ref_value value) {
  // A float stored to an integer saturates.
  bool narrows = !address->info->is_float && value.kind == TL_REF_FLOAT;
  if (narrows) value = tl_ref_cast(code, value, address->info->dtype);
  value = address->info->is_float ? tl_ref_to_float(code, value) : tl_ref_to_int(code, value);
  const char *type = element_type(address->info);
  int label = code->next_label++;
  bool is_checked = address->in_bounds.text[0] != 't';
  if (is_checked) {
    tl_strbuf_appendf(&code->body, "  br i1 %s, label %%store%d, label %%stored%d\nstore%d:\n", address->in_bounds.text,
                      label, label, label);
  }
  tl_ref_value pointer = tl_ref_op(code, TL_REF_INT, "getelementptr inbounds %s, ptr %%buf%d, i64 %s", type,
                                   address->buffer, address->offset.text);
  tl_strbuf_appendf(&code->body, "  store %s %s, ptr %s\n", type, value.text, pointer.text);
  if (is_checked) tl_strbuf_appendf(&code->body, "  br label %%stored%d\nstored%d:\n", label, label);
}
