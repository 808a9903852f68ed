// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The device module, rewritten so that the host can run it:
//   - a context of its own (a trip through bitcode, unless it has one), host triple and data layout; the host's code
//   generator treats the address
//     spaces of NVPTX as flat, so pointers stay as they are;
//   - shared variables become offsets from the running block's window;
//   - each call of a device op becomes  emu:<row>(result, args, site)  with memory for results and arguments: LLVM's
//   struct
//     returns are not the C ABI, pointers are;
//   - loops count down a budget, so that no thread can keep the others from running, and threads let others run before
//     accesses through which they meet (interleave.c);
//   - tl_emu_entry(params) loads the kernel's parameters and calls it.
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emulator/machine/machine.h"
#include "emulator/ops/ops.h"
#include "emulator/retarget/retarget.h"
#include "emulator/retarget/retargeted.h"
#include "emulator/retarget/undefined.h"
#include "emulator/sanitize/sanitize.h"
#include "llvm_backend/device/wgmma.h"
#include "llvm_backend/jit/host_jit.h"
#include "support/vec.h"

static tl_status unsupported(LLVMValueRef where, const char *what) {
  size_t len;
  const char *name = LLVMGetValueName2(where, &len);
  return tl_status_make(TL_STATUS_UNSUPPORTED, "the emulator cannot run %s in '%s'", what, name);
}

// ---- shared memory

static bool is_shared_global(LLVMValueRef value) {
  return LLVMIsAGlobalVariable(value) && LLVMGetPointerAddressSpace(LLVMTypeOf(value)) == SHARED_SPACE;
}

static bool mentions_shared(LLVMValueRef constant) {
  if (is_shared_global(constant)) return true;
  if (LLVMIsAGlobalValue(constant) || !LLVMIsAConstantExpr(constant)) return false;
  int n = LLVMGetNumOperands(constant);
  for (int i = 0; i < n; i++)
    if (mentions_shared(LLVMGetOperand(constant, (unsigned)i))) return true;
  return false;
}

static uint64_t align_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

static void place_variable(retarget *r, LLVMValueRef global, uint64_t *end, uint64_t *max_align) {
  uint64_t align = LLVMGetAlignment(global);
  if (!align) align = 16;
  if (align > *max_align) *max_align = align;
  uint64_t offset = align_up(*end, align);
  tl_vec_push(&r->shared, (shared_variable){global, offset});
  if (!LLVMIsDeclaration(global)) *end = offset + LLVMABISizeOfType(r->layout, LLVMGlobalGetValueType(global));
}

// Static variables first; external ones, which stand for dynamic shared memory, all start behind them.
static void lay_out_shared(retarget *r, const tl_manifest_kernel *manifest, tl_emu_retargeted *out) {
  uint64_t end = 0, max_align = 16;
  for (LLVMValueRef g = LLVMGetFirstGlobal(r->module); g; g = LLVMGetNextGlobal(g))
    if (is_shared_global(g) && !LLVMIsDeclaration(g)) place_variable(r, g, &end, &max_align);
  out->static_shared_bytes = end;
  uint64_t dynamic = (uint64_t)(manifest->dynamic_shared_bytes > 0 ? manifest->dynamic_shared_bytes : 0);
  for (LLVMValueRef g = LLVMGetFirstGlobal(r->module); g; g = LLVMGetNextGlobal(g))
    if (is_shared_global(g) && LLVMIsDeclaration(g)) place_variable(r, g, &end, &max_align);
  // The dynamic part starts where the best aligned of its names is.
  for (size_t i = 0; i < r->shared.len; i++)
    if (LLVMIsDeclaration(r->shared.items[i].global) && r->shared.items[i].offset > end)
      end = r->shared.items[i].offset;
  out->dynamic_offset = end;
  out->shared_bytes = end + dynamic;
  out->shared_align = max_align;
}

// `constant` as instructions at the builder's place, with the window's base for shared variables.
static LLVMValueRef materialise(retarget *r, LLVMValueRef constant) {
  if (is_shared_global(constant)) {
    for (size_t i = 0; i < r->shared.len; i++) {
      if (r->shared.items[i].global != constant) continue;
      LLVMValueRef offset = LLVMConstInt(r->i64, r->shared.items[i].offset, 0);
      return LLVMBuildGEP2(r->builder, r->i8, r->shared_base, &offset, 1, "");
    }
  }
  if (!LLVMIsAConstantExpr(constant) || !mentions_shared(constant)) return constant;
  LLVMValueRef operands[8] = {0};
  int n = LLVMGetNumOperands(constant);
  if (n < 1 || n > 8) return constant;  // found as a left-over use afterwards
  for (int i = 0; i < n; i++) operands[i] = materialise(r, LLVMGetOperand(constant, (unsigned)i));
  LLVMOpcode opcode = LLVMGetConstOpcode(constant);
  if (opcode == LLVMGetElementPtr)
    return LLVMBuildGEP2(r->builder, LLVMGetGEPSourceElementType(constant), operands[0], operands + 1, (unsigned)n - 1,
                         "");
  if (n == 2) return LLVMBuildBinOp(r->builder, opcode, operands[0], operands[1], "");
  return LLVMBuildCast(r->builder, opcode, operands[0], LLVMTypeOf(constant), "");
}

static void rewrite_shared_operands(retarget *r, LLVMValueRef instruction) {
  int n = LLVMGetNumOperands(instruction);
  bool is_phi = LLVMGetInstructionOpcode(instruction) == LLVMPHI;
  for (int i = 0; i < n; i++) {
    LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
    if (!operand || !LLVMIsConstant(operand) || !mentions_shared(operand)) continue;
    LLVMValueRef before =
        is_phi ? LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(instruction, (unsigned)i)) : instruction;
    LLVMPositionBuilderBefore(r->builder, before);
    LLVMSetOperand(instruction, (unsigned)i, materialise(r, operand));
  }
}

// Constant expressions that nobody uses any more stay in the use list: only instructions and initialisers count.
static bool has_live_use(LLVMValueRef value) {
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (LLVMIsAInstruction(user) || LLVMIsAGlobalValue(user) || has_live_use(user)) return true;
  }
  return false;
}

static tl_status delete_shared_variables(retarget *r) {
  for (size_t i = 0; i < r->shared.len; i++) {
    LLVMValueRef global = r->shared.items[i].global;
    if (has_live_use(global)) return unsupported(global, "this use of a shared variable,");
    LLVMReplaceAllUsesWith(global, LLVMGetPoison(LLVMTypeOf(global)));
    LLVMDeleteGlobal(global);
  }
  return TL_OK;
}

// ---- attributes

// Those that speak to the device's code generator, and promises about memory that the runtime does not keep.
static void drop_string_attributes(LLVMValueRef function) {
  unsigned n = LLVMGetAttributeCountAtIndex(function, LLVMAttributeFunctionIndex);
  if (!n) return;
  LLVMAttributeRef *attributes = tl_xcalloc(n, sizeof(LLVMAttributeRef));
  LLVMGetAttributesAtIndex(function, LLVMAttributeFunctionIndex, attributes);
  for (unsigned i = 0; i < n; i++) {
    if (!LLVMIsStringAttribute(attributes[i])) continue;
    unsigned len;
    const char *kind = LLVMGetStringAttributeKind(attributes[i], &len);
    LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, kind, len);
  }
  free(attributes);
}

// The number in a string attribute of a function, 0 when there is none.
static uint32_t number_of(LLVMValueRef function, const char *attribute) {
  LLVMAttributeRef found =
      LLVMGetStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute, (unsigned)strlen(attribute));
  if (!found) return 0;
  unsigned len;
  const char *text = LLVMGetStringAttributeValue(found, &len);
  uint32_t number = 0;
  for (unsigned i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++)
    number = 10 * number + (uint32_t)(text[i] - '0');
  return number;
}

static void set_function_attributes(retarget *r, LLVMValueRef function) {
  drop_string_attributes(function);
  LLVMSetFunctionCallConv(function, LLVMCCallConv);
  if (LLVMIsDeclaration(function)) return;
  unsigned memory = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
  LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, memory);
  // A large frame touches its pages in order, so that it cannot step over the guard below the stack.
  LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex,
                          LLVMCreateStringAttribute(r->context, "probe-stack", 11, "inline-asm", 10));
}

// ---- device ops

static bool is_device_op(const char *name) {
  return !strncmp(name, "llvm.nvvm.", 10) || !strncmp(name, "tl.", 3) || !strcmp(name, "llvm.trap") ||
         !strcmp(name, "llvm.debugtrap") || !strcmp(name, "vprintf") || !strcmp(name, "__assertfail");
}

// Ops whose names are parsed must be names that mean something, and be declared with the right number of operands.
static bool is_bound(LLVMValueRef function, const char *name) {
  if (!tl_emu_find_binding(name)) return false;
  tl_wgmma_op op;
  if (strncmp(name, TL_WGMMA_PREFIX, strlen(TL_WGMMA_PREFIX)) != 0) return true;
  if (!tl_wgmma_op_make(tl_str_from(name), &op)) return false;
  const char *args = strchr(op.row.signature, '(');
  unsigned results = (unsigned)(args - op.row.signature), params = (unsigned)strlen(args) - 2;
  LLVMTypeRef type = LLVMGlobalGetValueType(function), result = LLVMGetReturnType(type);
  tl_wgmma_op_fini(&op);
  bool is_struct = LLVMGetTypeKind(result) == LLVMStructTypeKind;
  unsigned has = is_struct ? LLVMCountStructElementTypes(result) : LLVMGetTypeKind(result) != LLVMVoidTypeKind;
  return LLVMCountParamTypes(type) == params && has == results;
}

static tl_status sanitize_ops_bound(retarget *r) {
  tl_strbuf missing = {0};
  for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f; f = LLVMGetNextFunction(f)) {
    size_t len;
    const char *name = LLVMGetValueName2(f, &len);
    if (!LLVMIsDeclaration(f) || !is_device_op(name) || !LLVMGetFirstUse(f) || is_bound(f, name)) continue;
    tl_strbuf_appendf(&missing, "%s%s", missing.len ? ", " : "", name);
  }
  tl_status status = TL_OK;
  if (missing.len)
    status = tl_status_make(TL_STATUS_UNSUPPORTED, "the emulator has no binding for %s", tl_strbuf_c(&missing));
  tl_strbuf_fini(&missing);
  return status;
}

static LLVMValueRef declare(retarget *r, const char *name, LLVMTypeRef type) {
  LLVMValueRef function = LLVMGetNamedFunction(r->module, name);
  return function ? function : LLVMAddFunction(r->module, name, type);
}

static LLVMTypeRef args_type(retarget *r, LLVMTypeRef function_type) {
  LLVMTypeRef types[MAX_OPERANDS];
  LLVMGetParamTypes(function_type, types);
  return LLVMStructTypeInContext(r->context, types, LLVMCountParamTypes(function_type), 0);
}

// The value whose bits `value` is. Fragments are integers cast to vectors, which host code would have to build first.
static LLVMValueRef behind_bitcast(LLVMValueRef value) {
  while (LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMBitCast) value = LLVMGetOperand(value, 0);
  return value;
}

// Loads what the op left in the result memory. Members of a struct are loaded one by one where they are only taken
// apart: the fast instruction selector knows no structs, and gives up the rest of the block to the slow one.
static void replace_result(retarget *r, LLVMValueRef call, LLVMTypeRef result) {
  LLVMValueRef members[MAX_OPERANDS] = {0};
  bool is_struct = LLVMGetTypeKind(result) == LLVMStructTypeKind && LLVMCountStructElementTypes(result) <= MAX_OPERANDS;
  for (LLVMUseRef use = LLVMGetFirstUse(call), next; use; use = next) {
    next = LLVMGetNextUse(use);
    LLVMValueRef user = LLVMGetUser(use);
    if (!is_struct || LLVMGetInstructionOpcode(user) != LLVMExtractValue || LLVMGetNumIndices(user) != 1) continue;
    unsigned i = LLVMGetIndices(user)[0];
    if (!members[i])
      members[i] = LLVMBuildLoad2(r->builder, LLVMStructGetTypeAtIndex(result, i),
                                  LLVMBuildStructGEP2(r->builder, result, r->result_memory, i, ""), "");
    LLVMReplaceAllUsesWith(user, members[i]);
    LLVMSetOperand(user, 0, LLVMGetPoison(result));
    tl_vec_push(&r->dead, user);
  }
  if (LLVMGetFirstUse(call)) LLVMReplaceAllUsesWith(call, LLVMBuildLoad2(r->builder, result, r->result_memory, ""));
}

static void rewrite_op_call(retarget *r, LLVMValueRef call, LLVMValueRef callee, const char *op) {
  const tl_emu_binding *binding = tl_emu_find_binding(op);
  if (binding->run == tl_emu_op_undefined) {
    LLVMReplaceAllUsesWith(call, LLVMConstNull(LLVMTypeOf(call)));
    LLVMInstructionEraseFromParent(call);
    return;
  }
  LLVMTypeRef type = LLVMGlobalGetValueType(callee), result = LLVMGetReturnType(type), args = args_type(r, type);
  unsigned n = LLVMCountParamTypes(type);
  bool has_result = LLVMGetTypeKind(result) != LLVMVoidTypeKind;
  LLVMPositionBuilderBefore(r->builder, call);
  for (unsigned i = 0; i < n; i++)
    LLVMBuildStore(r->builder, behind_bitcast(LLVMGetOperand(call, i)),
                   LLVMBuildStructGEP2(r->builder, args, r->args_memory, i, ""));
  tl_strbuf name = {0}, op_copy = {0};
  tl_strbuf_appendf(&name, "emu:%s", binding->name);
  tl_strbuf_append_c(&op_copy, op);
  LLVMValueRef none = LLVMConstNull(r->ptr);
  LLVMValueRef operands[] = {has_result ? r->result_memory : none, n ? r->args_memory : none, none};
  LLVMValueRef made =
      LLVMBuildCall2(r->builder, r->op_type, declare(r, tl_strbuf_c(&name), r->op_type), operands, 3, "");
  tl_strbuf_fini(&name);
  tl_emu_site site = {.binding = binding,
                      .op = tl_strbuf_take(&op_copy),
                      .ordinal = tl_emu_has_shadow_mark(r, call) ? 0 : ++r->num_op_calls,
                      .line = LLVMGetDebugLocLine(call),
                      .file = tl_emu_file_of(call),
                      .uses = tl_emu_uses_of(call),
                      .detail = tl_emu_wgmma_detail(op)};
  tl_vec_push(&r->sites, site);
  tl_vec_push(&r->site_calls, made);
  uint32_t granule = tl_emu_op_granule(binding);
  if (granule < r->granule) r->granule = granule;
  granule = tl_emu_op_global_granule(binding);
  if (granule < r->global_granule) r->global_granule = granule;
  if (has_result) replace_result(r, call, result);
  LLVMInstructionEraseFromParent(call);
}

// PTX ISA, min, max: -0 is less than +0, of which llvm.minnum and llvm.maxnum say nothing and the host takes either.
static void order_zeros(retarget *r, LLVMValueRef call, const char *name) {
  static const char prefixes[][13] = {"llvm.minnum.", "llvm.maxnum."};
  static const char *const ordered[] = {"llvm.minimumnum", "llvm.maximumnum"};
  for (int i = 0; i < 2; i++) {
    if (strncmp(name, prefixes[i], 12) != 0) continue;
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMValueRef function =
        LLVMGetIntrinsicDeclaration(r->module, LLVMLookupIntrinsicID(ordered[i], strlen(ordered[i])), &type, 1);
    LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, function);
  }
}

static tl_status rewrite_call(retarget *r, LLVMValueRef function, LLVMValueRef call) {
  LLVMSetInstructionCallConv(call, LLVMCCallConv);
  unsigned memory = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
  LLVMRemoveCallSiteEnumAttribute(call, LLVMAttributeFunctionIndex, memory);
  LLVMValueRef callee = LLVMGetCalledValue(call);
  if (LLVMIsAInlineAsm(callee)) return unsupported(function, "inline assembly");
  if (!LLVMIsAFunction(callee)) return unsupported(function, "an indirect call");
  if (!LLVMIsDeclaration(callee)) return TL_OK;
  size_t len;
  const char *name = LLVMGetValueName2(callee, &len);
  if (is_device_op(name))
    rewrite_op_call(r, call, callee, name);
  else
    order_zeros(r, call, name);
  return TL_OK;
}

// The largest argument and result structs of the ops that are declared.
static void measure_ops(retarget *r, uint64_t *out_args, uint64_t *out_result) {
  *out_args = *out_result = 8;
  for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f; f = LLVMGetNextFunction(f)) {
    size_t len;
    if (!LLVMIsDeclaration(f) || !is_device_op(LLVMGetValueName2(f, &len))) continue;
    LLVMTypeRef type = LLVMGlobalGetValueType(f), result = LLVMGetReturnType(type);
    uint64_t bytes = LLVMABISizeOfType(r->layout, args_type(r, type));
    if (bytes > *out_args) *out_args = bytes;
    bytes = LLVMGetTypeKind(result) == LLVMVoidTypeKind ? 0 : LLVMABISizeOfType(r->layout, result);
    if (bytes > *out_result) *out_result = bytes;
  }
}

static LLVMValueRef build_memory(retarget *r, uint64_t bytes, const char *name) {
  LLVMValueRef memory = LLVMBuildAlloca(r->builder, LLVMArrayType2(r->i8, bytes), name);
  LLVMSetAlignment(memory, 16);
  return memory;
}

// What the function needs at hand: memory for ops, the machine, the base of shared memory.
static void begin_function(retarget *r, LLVMValueRef function, uint64_t args_bytes, uint64_t result_bytes) {
  LLVMPositionBuilderBefore(r->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
  r->args_memory = build_memory(r, args_bytes, "args");
  r->result_memory = build_memory(r, result_bytes, "result");
  r->machine = LLVMBuildCall2(r->builder, r->context_type, r->context_function, NULL, 0, "machine");
  LLVMValueRef offset = LLVMConstInt(r->i64, offsetof(tl_emu_context, shared), 0);
  LLVMValueRef place = LLVMBuildGEP2(r->builder, r->i8, r->machine, &offset, 1, "");
  r->shared_base = LLVMBuildLoad2(r->builder, r->shared_ptr, place, "shared");
}

static tl_status rewrite_function(retarget *r, LLVMValueRef function, uint64_t args_bytes, uint64_t result_bytes) {
  begin_function(r, function, args_bytes, result_bytes);
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block; block = LLVMGetNextBasicBlock(block)) {
    LLVMValueRef next;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = next) {
      next = LLVMGetNextInstruction(i);
      rewrite_shared_operands(r, i);
      tl_emu_let_threads_meet(r, i);
      if (i != r->shared_base) tl_emu_instrument_access(r, i);
      tl_emu_instrument_fence(r, i);
      // The call of context_function itself is made of nothing that needs rewriting.
      if (LLVMGetInstructionOpcode(i) == LLVMCall && i != r->machine) TL_TRY(rewrite_call(r, function, i));
    }
  }
  for (size_t i = 0; i < r->dead.len; i++) LLVMInstructionEraseFromParent(r->dead.items[i]);
  tl_vec_clear(&r->dead);
  tl_emu_poll_in_loops(r, function);
  return TL_OK;
}

// ---- entry

// A struct that is passed by value: each thread has a copy, aligned as the kernel was promised.
static LLVMValueRef copy_by_value(retarget *r, LLVMValueRef kernel, unsigned index, LLVMAttributeRef byval,
                                  LLVMValueRef from) {
  LLVMTypeRef type = LLVMGetTypeAttributeValue(byval);
  unsigned kind = LLVMGetEnumAttributeKindForName("align", strlen("align"));
  LLVMAttributeRef align = LLVMGetEnumAttributeAtIndex(kernel, index + 1, kind);
  LLVMValueRef copy = LLVMBuildAlloca(r->builder, type, "");
  unsigned bytes = align ? (unsigned)LLVMGetEnumAttributeValue(align) : LLVMABIAlignmentOfType(r->layout, type);
  LLVMSetAlignment(copy, bytes);
  LLVMBuildMemCpy(r->builder, copy, bytes, from, 1, LLVMConstInt(r->i64, LLVMABISizeOfType(r->layout, type), 0));
  return copy;
}

// Loads each parameter from where params[i] points, as cuLaunchKernel does.
static tl_status build_entry(retarget *r, const tl_manifest_kernel *manifest) {
  LLVMValueRef kernel = LLVMGetNamedFunction(r->module, manifest->name);
  if (!kernel || LLVMIsDeclaration(kernel))
    return tl_status_make(TL_STATUS_NOT_FOUND, "the module has no kernel '%s'", manifest->name);
  LLVMTypeRef type = LLVMGlobalGetValueType(kernel);
  unsigned n = LLVMCountParamTypes(type);
  if (n != manifest->num_params)
    return tl_status_make(TL_STATUS_INTERNAL, "kernel '%s' has %u parameters, its manifest %u", manifest->name, n,
                          manifest->num_params);
  // Whatever the kernel is called, it does not take the place of the entry, or of a function of the C library.
  LLVMSetValueName2(kernel, "emu.kernel", strlen("emu.kernel"));
  LLVMTypeRef *params = tl_xcalloc((size_t)n + 1, sizeof *params);
  LLVMGetParamTypes(type, params);
  LLVMValueRef entry = LLVMAddFunction(r->module, "tl_emu_entry", LLVMFunctionType(r->void_type, &r->ptr, 1, 0));
  LLVMPositionBuilderAtEnd(r->builder, LLVMAppendBasicBlockInContext(r->context, entry, "entry"));
  unsigned byval = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
  LLVMValueRef *values = tl_xcalloc((size_t)n + 1, sizeof *values);
  for (unsigned i = 0; i < n; i++) {
    LLVMValueRef index = LLVMConstInt(r->i32, i, 0);
    LLVMValueRef slot = LLVMBuildGEP2(r->builder, r->ptr, LLVMGetParam(entry, 0), &index, 1, "");
    values[i] = LLVMBuildLoad2(r->builder, r->ptr, slot, "");
    LLVMAttributeRef by_value = LLVMGetEnumAttributeAtIndex(kernel, i + 1, byval);
    if (by_value) {
      values[i] = copy_by_value(r, kernel, i, by_value, values[i]);
      LLVMRemoveEnumAttributeAtIndex(kernel, i + 1, byval);
    } else {
      values[i] = LLVMBuildLoad2(r->builder, params[i], values[i], "");
      LLVMSetAlignment(values[i], 1);
    }
  }
  LLVMBuildCall2(r->builder, type, kernel, values, n, "");
  LLVMBuildRetVoid(r->builder);
  LLVMSetLinkage(kernel, LLVMInternalLinkage);
  free(values);
  free(params);
  return TL_OK;
}

// ---- the whole

static void collect_error(LLVMDiagnosticInfoRef info, void *context) {
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  tl_strbuf_append_c(context, text);
  LLVMDisposeMessage(text);
}

static tl_status read_bitcode(retarget *r, const char *bitcode, size_t len) {
  tl_strbuf errors = {0};
  LLVMContextSetDiagnosticHandler(r->context, collect_error, &errors);
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(bitcode, len, "device");
  bool failed = LLVMParseBitcodeInContext2(r->context, buffer, &r->module);
  LLVMDisposeMemoryBuffer(buffer);
  tl_status status = TL_OK;
  if (failed)
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the device bitcode cannot be read: %s", tl_strbuf_c(&errors));
  tl_strbuf_fini(&errors);
  LLVMContextSetDiagnosticHandler(r->context, NULL, NULL);
  return status;
}

static void make_types(retarget *r) {
  r->builder = LLVMCreateBuilderInContext(r->context);
  r->i8 = LLVMInt8TypeInContext(r->context);
  r->i32 = LLVMInt32TypeInContext(r->context);
  r->i64 = LLVMInt64TypeInContext(r->context);
  r->ptr = LLVMPointerTypeInContext(r->context, 0);
  r->shared_ptr = LLVMPointerTypeInContext(r->context, SHARED_SPACE);
  r->void_type = LLVMVoidTypeInContext(r->context);
  LLVMTypeRef operands[] = {r->ptr, r->ptr, r->ptr};
  r->op_type = LLVMFunctionType(r->void_type, operands, 3, 0);
  LLVMTypeRef acquired[] = {r->ptr, r->i32};
  r->acquired_type = LLVMFunctionType(r->void_type, acquired, 2, 0);
  r->touch_type = LLVMFunctionType(r->ptr, operands, 2, 0);
  r->touch_store_type = LLVMFunctionType(r->ptr, operands, 3, 0);
  r->context_type = LLVMFunctionType(r->ptr, NULL, 0, 0);
}

static tl_status rewrite_module(retarget *r, const tl_manifest_kernel *manifest, tl_emu_retargeted *out) {
  TL_TRY(tl_host_jit_prepare_module(r->module));
  r->layout = LLVMGetModuleDataLayout(r->module);
  make_types(r);
  TL_TRY(sanitize_ops_bound(r));
  lay_out_shared(r, manifest, out);
  LLVMValueRef kernel = LLVMGetNamedFunction(r->module, manifest->name);
  if (kernel)
    out->entry_registers = tl_emu_entry_registers(number_of(kernel, "nvvm.maxnreg"), number_of(kernel, "nvvm.minctasm"),
                                                  (uint32_t)manifest->block_threads);
  if (r->checks & TL_EMU_SANITIZE_INIT) tl_emu_follow_undefined(r);
  out->follows_undefined = r->follows_undefined;
  uint64_t args_bytes, result_bytes;
  measure_ops(r, &args_bytes, &result_bytes);
  TL_VEC(LLVMValueRef) functions = {0};
  for (LLVMValueRef f = LLVMGetFirstFunction(r->module); f; f = LLVMGetNextFunction(f)) {
    set_function_attributes(r, f);
    if (!LLVMIsDeclaration(f)) tl_vec_push(&functions, f);
  }
  r->context_function = LLVMAddFunction(r->module, "emu:context", r->context_type);
  if (r->checks) {
    r->touch_function = LLVMAddFunction(r->module, "emu:touch", r->touch_type);
    r->touch_store_function = LLVMAddFunction(r->module, "emu:touch_store", r->touch_store_type);
    r->acquired_function = LLVMAddFunction(r->module, "emu:acquired", r->acquired_type);
    r->observed_function = LLVMAddFunction(r->module, "emu:observed", r->acquired_type);
    r->fence_function = LLVMAddFunction(r->module, "emu:fence", LLVMFunctionType(r->void_type, &r->i32, 1, 0));
    r->has_fences = tl_emu_has_fences(r->module);
    tl_emu_find_scopes(r);
    out->has_narrow = r->has_narrow;
  }
  tl_emu_define_turns(r);
  tl_status status = TL_OK;
  for (size_t i = 0; !status && i < functions.len; i++)
    status = rewrite_function(r, functions.items[i], args_bytes, result_bytes);
  tl_vec_fini(&functions);
  TL_TRY(status);
  TL_TRY(delete_shared_variables(r));
  TL_TRY(build_entry(r, manifest));
  // The array of sites does not move any more.
  for (size_t i = 0; i < r->sites.len; i++)
    LLVMSetOperand(r->site_calls.items[i], r->sites.items[i].binding ? 2 : 1,
                   LLVMConstIntToPtr(LLVMConstInt(r->i64, (uintptr_t)&r->sites.items[i], 0), r->ptr));
  return TL_OK;
}

// `r` has its context, and its module unless `status` says why not.
static tl_status retarget_own(retarget *r, tl_status status, const tl_manifest_kernel *manifest, uint32_t checks,
                              tl_emu_retargeted *out) {
  memset(out, 0, sizeof *out);
  r->checks = checks & TL_EMU_SANITIZE_ALL;
  r->equal_passes = r->checks && (checks & TL_EMU_SANITIZE_LENIENT);
  r->granule = r->global_granule = MAX_GRANULE;
  if (!status) status = rewrite_module(r, manifest, out);
  if (r->builder) LLVMDisposeBuilder(r->builder);
  tl_vec_fini(&r->shared);
  tl_vec_fini(&r->site_calls);
  tl_vec_fini(&r->dead);
  out->sites = r->sites.items;
  out->num_sites = r->sites.len;
  out->shared_granule = r->granule;
  out->global_granule = r->global_granule;
  out->module = r->module;
  if (status) {
    if (r->module) LLVMDisposeModule(r->module);
    LLVMContextDispose(r->context);
    out->module = NULL;
  }
  return status;
}

tl_status tl_emu_retarget(const char *bitcode, size_t len, const tl_manifest_kernel *manifest, uint32_t checks,
                          tl_emu_retargeted *out) {
  retarget r = {.context = LLVMContextCreate()};
  return retarget_own(&r, read_bitcode(&r, bitcode, len), manifest, checks, out);
}

tl_status tl_emu_retarget_module(void *module, const tl_manifest_kernel *manifest, uint32_t checks,
                                 tl_emu_retargeted *out) {
  retarget r = {.context = LLVMGetModuleContext(module), .module = module};
  return retarget_own(&r, TL_OK, manifest, checks, out);
}

void tl_emu_retargeted_fini(tl_emu_retargeted *retargeted) {
  if (retargeted->module) {
    LLVMContextRef context = LLVMGetModuleContext(retargeted->module);
    LLVMDisposeModule(retargeted->module);
    LLVMContextDispose(context);
  }
  for (size_t i = 0; i < retargeted->num_sites; i++) {
    free((char *)retargeted->sites[i].op);
    free(retargeted->sites[i].detail);
    free((char *)retargeted->sites[i].file);
    free((char *)retargeted->sites[i].uses);
  }
  free(retargeted->sites);
  memset(retargeted, 0, sizeof *retargeted);
}
