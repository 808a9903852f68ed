// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PTX of others: what a launch needs and the text does not say comes from the command line, and becomes a manifest.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/table/table.h"
#include "tools/tl_run.h"

// "4", "4,2", "4,2,1": numbers from 1 on.
static bool read_extent(const char *text, uint32_t extent[3]) {
  for (int i = 0; i < 3; i++) {
    char *end = (char *)text;
    long long number = 1;
    if (!i || *text) number = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : 0;
    if (number < 1 || number > INT32_MAX || (*end && (*end != ',' || !end[1]))) return false;
    extent[i] = (uint32_t)number;
    text = *end ? end + 1 : end;
  }
  return !*text;
}

bool tl_run_foreign_option(tl_run_tool *t, int option, const char *text) {
  tl_run_foreign_options *f = &t->foreign;
  uint32_t *extent = option == TL_RUN_OPT_GRID      ? f->grid
                     : option == TL_RUN_OPT_BLOCK   ? f->block
                     : option == TL_RUN_OPT_CLUSTER ? f->cluster
                                                    : NULL;
  if (extent) {
    if (!read_extent(text, extent)) tl_cli_usage_error(&t->cli, "an extent is X, X,Y or X,Y,Z, not '%s'", text);
    return true;
  }
  long long number;
  if (option == TL_RUN_OPT_SHARED) {
    if (tl_cli_int(&t->cli, "--shared", text, 0, 1 << 20, &number)) f->shared = number;
    return true;
  }
  if (option == TL_RUN_OPT_LAUNCH) {
    f->launch_path = text;
    return true;
  }
  if (option == TL_RUN_OPT_CONTRACT) {
    static const char *const choices[] = {
        [TL_CONTRACT_OFF] = "off", [TL_CONTRACT_ON] = "on", [TL_CONTRACT_BOTH] = "both", NULL};
    int choice = tl_cli_one_of(&t->cli, "--contract", text, choices);
    if (choice >= 0) f->contract = (tl_run_contract)choice;
    return true;
  }
  if (option != TL_RUN_OPT_ARG) return false;
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    tl_cli_usage_error(&t->cli, "--arg takes NAME=KIND, not '%s'", text);
  else {
    const uint32_t param = (uint32_t)f->args.len;
    tl_vec_push(&f->args, (tl_run_foreign_arg){.pair = {{text, (size_t)(equals - text)}, equals + 1}, .param = param});
  }
  return true;
}

void tl_run_foreign_reset(tl_run_tool *t) {
  tl_run_foreign_options *f = &t->foreign;
  tl_vec_clear(&f->args);
  tl_vec_clear(&f->expected);
  tl_vec_clear(&f->fields);
  tl_vec_clear(&t->inputs);
  for (int i = 0; i < 3; i++) f->grid[i] = f->block[i] = f->cluster[i] = 0;
  f->shared = 0;
  f->tolerance[0] = f->tolerance[1] = 0;
}

// ---- one argument

static tl_str take_word(tl_str *rest) {
  *rest = tl_str_trim(*rest);
  size_t end = 0;
  while (end < rest->len && rest->data[end] != ' ' && rest->data[end] != '[') end++;
  tl_str word = tl_str_sub(*rest, 0, end);
  *rest = tl_str_trim(tl_str_sub(*rest, end, rest->len));
  return word;
}

// Where the argument is wrong: in the launch file, or on the command line.
static tl_status wrong(tl_run_tool *t, const tl_run_foreign_arg *arg, const char *why) {
  if (!arg->loc.source)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--arg %.*s=%s: %s", TL_STR_ARG(arg->pair.name), arg->pair.rest,
                          why);
  tl_diag_report(&t->cli.diags, TL_DIAG_PTX_LAUNCH, arg->loc, "%.*s: %s", TL_STR_ARG(arg->pair.name), why);
  return tl_status_make(TL_STATUS_DIAGNOSTICS, "the launch file has errors");
}

// "[64, 32]"
static tl_status parse_dims(tl_run_tool *t, const tl_run_foreign_arg *arg, tl_str text, tl_manifest_param *param) {
  enum { MAX_RANK = 8 };
  tl_arena *arena = &t->cli.arena;
  int64_t dims[MAX_RANK];
  if (text.len < 3 || text.data[0] != '[' || text.data[text.len - 1] != ']')
    return wrong(t, arg, "a pointer says how much it points at, as in 'in f32[1024]'");
  text = tl_str_sub(text, 1, text.len - 2);
  while (text.len) {
    size_t comma = tl_str_find(text, ',');
    char *end, digits[24];
    snprintf(digits, sizeof digits, "%.*s", TL_STR_ARG(tl_str_trim(tl_str_sub(text, 0, comma))));
    if (param->rank == MAX_RANK) return wrong(t, arg, "too many dims");
    dims[param->rank] = strtoll(digits, &end, 10);
    if (end == digits || *end || dims[param->rank] < 0) return wrong(t, arg, "dims are numbers");
    param->rank++;
    text = comma == SIZE_MAX ? TL_STR("") : tl_str_sub(text, comma + 1, text.len);
  }
  param->dims = TL_NEW_ARRAY(arena, const tl_mexpr *, param->rank);
  param->strides = TL_NEW_ARRAY(arena, const tl_mexpr *, param->rank);
  int64_t stride = 1;
  for (int32_t d = param->rank; d-- > 0;) {
    param->dims[d] = tl_mexpr_int(arena, dims[d]);
    param->strides[d] = tl_mexpr_int(arena, stride);
    if (__builtin_mul_overflow(stride, dims[d] ? dims[d] : 1, &stride) || stride > INT64_C(1) << 40)
      return wrong(t, arg, "an array of more than 2^40 elements");
  }
  return TL_OK;
}

// Where the argument stands in its parameter, as C lays out structs. A parameter that is no struct is one argument.
static tl_status place_arg(tl_run_tool *t, const tl_run_foreign_arg *arg, const tl_ptx_symbol *symbol,
                           const tl_manifest_param *param) {
  uint64_t has = symbol->elements * tl_ptx_type_bytes(symbol->type);
  uint32_t bytes = param->kind == TL_MPARAM_TENSOR ? 8 : ((uint32_t)tl_dtype_bits(param->dtype) + 7) / 8, offset = 0;
  if (t->foreign.fields.len) {
    const tl_emu_ptx_field *last = &tl_vec_last(&t->foreign.fields);
    if (last->param == arg->param) offset = (last->offset + last->bytes + bytes - 1) / bytes * bytes;
  }
  tl_vec_push(&t->foreign.fields, (tl_emu_ptx_field){arg->param, offset, bytes});
  if (arg->is_field ? offset + bytes <= has : bytes == has) return TL_OK;
  char why[160];
  snprintf(why, sizeof why, "the kernel's parameter '%.80s' has %llu bytes",
           tl_arena_copy_bytes(&t->cli.arena, symbol->name.data, symbol->name.len), (unsigned long long)has);
  return wrong(t, arg, why);
}

// "in f32[1024]", "inout …", "out …": a pointer; "i32 1024": a value, which becomes an --in.
static tl_status parse_arg(tl_run_tool *t, const tl_run_foreign_arg *arg, const tl_ptx_symbol *symbol,
                           tl_manifest_param *param) {
  enum { ALIGN = 16 };
  tl_arena *arena = &t->cli.arena;
  tl_str rest = tl_str_from(arg->pair.rest), word = take_word(&rest);
  static const char *const accesses[] = {"in", "out", "inout"};
  *param = (tl_manifest_param){.kind = TL_MPARAM_SCALAR,
                               .name = tl_arena_copy_bytes(arena, arg->pair.name.data, arg->pair.name.len)};
  for (int i = 0; i < 3; i++) {
    if (!tl_str_is(word, accesses[i])) continue;
    param->kind = TL_MPARAM_TENSOR;
    param->access = i;
    param->align = ALIGN;
    word = take_word(&rest);
  }
  param->dtype = tl_dtype_parse(word);
  if (param->dtype == TL_DTYPE_NONE) return wrong(t, arg, "there is no such element type");
  TL_TRY(place_arg(t, arg, symbol, param));
  if (param->kind == TL_MPARAM_TENSOR) return parse_dims(t, arg, rest, param);
  if (!rest.len) return wrong(t, arg, "a value is given, as in 'i32 1024'");
  if (rest.data[0] == '[')
    return wrong(t, arg, "an array in a struct has its values one behind the other, as in 'i8 0 0 0'");
  bool is_float = tl_ptx_type_class(symbol->type) == TL_PTX_CLASS_FLOAT,
       is_bits = tl_ptx_type_class(symbol->type) == TL_PTX_CLASS_BITS;
  if (!arg->is_field && !is_bits && is_float != tl_dtype_is_float(param->dtype))
    return wrong(t, arg, is_float ? "the kernel's parameter is a float" : "the kernel's parameter is an integer");
  tl_vec_push(&t->in, (tl_run_pair){arg->pair.name, rest.data});
  return TL_OK;
}

// ---- the kernel

static tl_status find_kernel(const tl_run_tool *t, const tl_ptx_module *module, const tl_ptx_function **out) {
  tl_strbuf names = {0};
  uint32_t count = 0;
  *out = NULL;
  for (uint32_t i = 0; i < module->num_functions; i++) {
    const tl_ptx_function *f = module->functions[i];
    if (!f->is_entry || !f->has_body) continue;
    tl_strbuf_appendf(&names, "%s%.*s", count++ ? ", " : "", TL_STR_ARG(f->name));
    if (!t->cli.kernel_name || tl_str_is(f->name, t->cli.kernel_name)) *out = f;
  }
  tl_status status = TL_OK;
  if (!*out && t->cli.kernel_name)
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "there is no kernel '%s': the PTX has %s", t->cli.kernel_name,
                            count ? tl_strbuf_c(&names) : "none");
  else if (!*out || (!t->cli.kernel_name && count > 1))
    status = tl_status_make(TL_STATUS_INVALID_ARGUMENT, "name one of its kernels by --kernel=NAME: %s",
                            count ? tl_strbuf_c(&names) : "it has none");
  tl_strbuf_fini(&names);
  return status;
}

static tl_status set_shape(tl_run_tool *t, const tl_ptx_function *f, tl_manifest_kernel *kernel) {
  tl_run_foreign_options *o = &t->foreign;
  if (!o->grid[0])
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--grid=X[,Y[,Z]] says how many blocks are launched");
  if (!o->block[0]) memcpy(o->block, f->reqntid, sizeof o->block);
  if (!o->block[0])
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "--block=X[,Y[,Z]] says how many threads a block has");
  if (f->reqntid[0] && memcmp(f->reqntid, o->block, sizeof o->block) != 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "the kernel takes blocks of %u,%u,%u threads (.reqntid)",
                          f->reqntid[0], f->reqntid[1], f->reqntid[2]);
  uint64_t threads = (uint64_t)o->block[0] * o->block[1] * o->block[2];
  if (threads > 1024) return tl_status_make(TL_STATUS_INVALID_ARGUMENT, "a block has up to 1024 threads");
  if (f->cluster[0] && o->cluster[0] && memcmp(f->cluster, o->cluster, sizeof o->cluster) != 0)
    return tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                          "the kernel takes clusters of %u,%u,%u blocks (.reqnctapercluster)", f->cluster[0],
                          f->cluster[1], f->cluster[2]);
  const uint32_t *cluster = o->cluster[0] ? o->cluster : f->cluster;
  for (int i = 0; i < 3; i++) {
    kernel->grid[i] = tl_mexpr_int(&t->cli.arena, o->grid[i]);
    kernel->cluster[i] = cluster[i] ? (int32_t)cluster[i] : 1;
  }
  kernel->block_threads = kernel->math_threads = (int32_t)threads;
  kernel->dynamic_shared_bytes = o->shared;
  return TL_OK;
}

// Names the parameters, which are all that the PTX tells.
static tl_status wrong_count(const tl_ptx_function *f, uint32_t given) {
  tl_strbuf text = {0};
  for (uint32_t i = 0; i < f->num_params; i++) {
    const tl_ptx_symbol *p = f->params[i];
    tl_strbuf_appendf(&text, "%s.%s %.*s", i ? ", " : ": ", tl_ptx_type_name(p->type), TL_STR_ARG(p->name));
    if (p->is_array) tl_strbuf_appendf(&text, "[%llu]", (unsigned long long)p->elements);
  }
  tl_status status = tl_status_make(TL_STATUS_INVALID_ARGUMENT,
                                    "the kernel has %u parameters; %u arguments were given (--arg, or args of a launch "
                                    "file)%s",
                                    f->num_params, given, tl_strbuf_c(&text));
  tl_strbuf_fini(&text);
  return status;
}

static tl_status make_kernel(tl_run_tool *t, const tl_ptx_function *f, tl_manifest_kernel *kernel) {
  tl_arena *arena = &t->cli.arena;
  kernel->name = tl_arena_copy_bytes(arena, f->name.data, f->name.len);
  kernel->doc = "";
  const size_t num_args = t->foreign.args.len;
  const uint32_t given = num_args ? tl_vec_last(&t->foreign.args).param + 1 : 0;
  if (given != f->num_params) return wrong_count(f, given);
  TL_TRY(set_shape(t, f, kernel));
  kernel->num_params = (uint32_t)num_args;
  kernel->params = TL_NEW_ARRAY(arena, tl_manifest_param, num_args + 1);
  tl_vec_clear(&t->foreign.fields);
  bool has_struct = false;
  for (size_t i = 0; i < num_args; i++) {
    const tl_run_foreign_arg *arg = &t->foreign.args.items[i];
    TL_TRY(parse_arg(t, arg, f->params[arg->param], &kernel->params[i]));
    has_struct |= arg->is_field;
  }
  if (!has_struct) tl_vec_clear(&t->foreign.fields);
  return TL_OK;
}

// PTX ISA, mul, add: without a rounding modifier ptxas may make one instruction of a product and a sum.
static void tell_open(const tl_ptx_function *f) {
  uint32_t counts[2] = {0};
  for (uint32_t i = 0; i < f->num_statements; i++) {
    const tl_ptx_statement *s = &f->statements[i];
    if (s->kind != TL_PTX_INSTRUCTION || !(tl_ptx_has(s, "f32") || tl_ptx_has(s, "f64"))) continue;
    bool is_product = tl_str_is(s->words[0], "mul"),
         is_sum = tl_str_is(s->words[0], "add") || tl_str_is(s->words[0], "sub");
    bool is_rounded = tl_ptx_has(s, "rn") || tl_ptx_has(s, "rz") || tl_ptx_has(s, "rm") || tl_ptx_has(s, "rp");
    if ((is_product || is_sum) && !is_rounded) counts[is_sum]++;
  }
  if (counts[0] && counts[1])
    fprintf(stderr,
            "note: %u products and %u sums have no rounding modifier: ptxas may fuse them, the emulator does so with "
            "--contract=on\n",
            counts[0], counts[1]);
}

static tl_status write_manifest(tl_run_tool *t, const tl_ptx_module *module, tl_strbuf *out) {
  const tl_ptx_function *f;
  TL_TRY(find_kernel(t, module, &f));
  tl_manifest_kernel kernel = {0};
  TL_TRY(make_kernel(t, f, &kernel));
  if (t->foreign.contract == TL_CONTRACT_OFF) tell_open(f);
  tl_manifest manifest = {.arena = &t->cli.arena,
                          .abi = TL_MANIFEST_ABI,
                          .generator = "tl-run",
                          .target = tl_arena_copy_bytes(&t->cli.arena, module->target.data, module->target.len),
                          .ptx_version = module->version,
                          .kernels = &kernel,
                          .num_kernels = 1};
  tl_manifest_write(&manifest, NULL, out);
  return TL_OK;
}

tl_status tl_run_foreign_manifest(tl_run_tool *t, tl_str ptx, tl_strbuf *out) {
  uint32_t source = tl_sources_add(&t->cli.sources, t->cli.input, ptx);
  tl_ptx_module *module = tl_ptx_parse(&t->cli.sources, source, &t->cli.diags);
  if (!module) return tl_status_make(TL_STATUS_DIAGNOSTICS, "the PTX has errors");
  tl_status status = write_manifest(t, module, out);
  tl_ptx_destroy(module);
  return status;
}
