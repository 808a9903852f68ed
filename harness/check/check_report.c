// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "harness/check/check_report.h"

#include <math.h>
#include <stdlib.h>

enum { WARP = 32, MAX_SHOWN = 5, MAX_LOOKED_AT = 65536 };

// "0-4, 9" of a bit set.
static void print_bits(uint32_t bits, tl_strbuf *out) {
  bool first = true;
  for (int i = 0; i < 32; i++) {
    if (!(bits >> i & 1)) continue;
    int last = i;
    while (last + 1 < 32 && (bits >> (last + 1) & 1)) last++;
    tl_strbuf_appendf(out, last > i ? "%s%d-%d" : "%s%d", first ? "" : ", ", i, last);
    first = false;
    i = last;
  }
}

// "[3, 7]"
static void print_place(const int64_t *index, int32_t rank, tl_strbuf *out) {
  tl_strbuf_append_char(out, '[');
  for (int32_t d = 0; d < rank; d++) tl_strbuf_appendf(out, "%s%lld", d ? ", " : "", (long long)index[d]);
  tl_strbuf_append_char(out, ']');
}

// "[0:4, 7]", ends not included.
static void print_box(const int64_t *low, const int64_t *high, int32_t rank, tl_strbuf *out) {
  tl_strbuf_append_char(out, '[');
  for (int32_t d = 0; d < rank; d++) {
    tl_strbuf_appendf(out, "%s%lld", d ? ", " : "", (long long)low[d]);
    if (high[d] != low[d]) tl_strbuf_appendf(out, ":%lld", (long long)high[d] + 1);
  }
  tl_strbuf_append_char(out, ']');
}

static void print_owner(const tl_writers *writers, const tl_element_origin *origin, tl_strbuf *out) {
  if (writers->has_tiles)
    tl_strbuf_appendf(out, "tile %u", origin->owner);
  else
    tl_strbuf_appendf(out, "block (%u, %u, %u)", origin->block[0], origin->block[1], origin->block[2]);
}

static void print_origin(const tl_writers *writers, const tl_element_origin *origin, int32_t rank, tl_strbuf *out) {
  if (origin->is_unwritten) tl_strbuf_append_c(out, "; nobody wrote it");
  if (!origin->is_known) return;
  tl_strbuf_append_c(out, "; ");
  print_owner(writers, origin, out);
  if (rank) {
    tl_strbuf_append_c(out, ", ");
    print_place(origin->tile, rank, out);
    tl_strbuf_append_c(out, writers->has_tiles ? " of it" : " of its tile");
  }
  if (origin->thread >= 0)
    tl_strbuf_appendf(out, ", warp %d, lane %d", origin->thread / WARP, origin->thread % WARP);
  else
    tl_strbuf_append_c(out, ", by an asynchronous operation");
  if (origin->place) tl_strbuf_appendf(out, ", %s", origin->place);
}

// Where all of them lie, in a line.
static void print_where(const tl_compared_output *output, const tl_where *where, uint64_t looked_at, tl_strbuf *out) {
  int32_t rank = output->arg->array.rank;
  if (looked_at < output->result.num_failed)
    tl_strbuf_appendf(out, "the first %llu of them lie in ", (unsigned long long)looked_at);
  else
    tl_strbuf_append_c(out, output->result.num_failed == 1 ? "it lies in " : "they lie in ");
  print_box(where->low, where->high, rank, out);
  if (where->num_unwritten == looked_at)
    tl_strbuf_append_c(out, "; nobody wrote them");
  else if (where->num_unwritten)
    tl_strbuf_appendf(out, "; nobody wrote %llu of them", (unsigned long long)where->num_unwritten);
  if (!where->is_known) return;
  tl_strbuf_append_c(out, where->num_unwritten ? "; the others are at " : ", at ");
  print_box(where->tile_low, where->tile_high, rank, out);
  tl_strbuf_appendf(out, " of %s, in %llu of %llu %s", where->num_wrong_owners == 1 ? "its tile" : "their tiles",
                    (unsigned long long)where->num_wrong_owners, (unsigned long long)where->num_owners,
                    output->writers->has_tiles ? "tile" : "block");
  if (where->num_owners != 1) tl_strbuf_append_char(out, 's');
  if (where->warps) {
    tl_strbuf_append_c(out, where->warps & (where->warps - 1) ? "; warps " : "; warp ");
    print_bits(where->warps, out);
    tl_strbuf_append_c(out, where->lanes & (where->lanes - 1) ? ", lanes " : ", lane ");
    print_bits(where->lanes, out);
  }
  if (where->is_async)
    tl_strbuf_append_c(out, where->warps ? ", and asynchronous operations" : "; by asynchronous operations");
}

// ---- JSON

// Numbers that JSON does not have are strings.
static void json_number(double value, tl_strbuf *out) {
  if (isfinite(value))
    tl_strbuf_appendf(out, "%.17g", value);
  else
    tl_strbuf_append_c(out, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
}

static void json_element(const tl_compared_output *output, const tl_compare_element *element,
                         const tl_element_origin *origin, tl_strbuf *out) {
  const tl_array *array = &output->arg->array;
  tl_strbuf_append_c(out, "{\"index\": ");
  tl_compare_print_index(array, element->index, out);
  if (!output->result.is_int) {
    tl_strbuf_append_c(out, ", \"value\": ");
    json_number(element->value, out);
    tl_strbuf_append_c(out, ", \"expected\": ");
    json_number(element->reference, out);
  } else if (array->dtype == TL_DTYPE_U64) {
    tl_strbuf_appendf(out, ", \"value\": %llu, \"expected\": %llu", (unsigned long long)element->int_value,
                      (unsigned long long)element->int_reference);
  } else {
    tl_strbuf_appendf(out, ", \"value\": %lld, \"expected\": %lld", (long long)element->int_value,
                      (long long)element->int_reference);
  }
  if (origin && origin->is_unwritten) tl_strbuf_append_c(out, ", \"unwritten\": true");
  if (origin && origin->is_known) {
    if (output->writers->has_tiles)
      tl_strbuf_appendf(out, ", \"tile\": %u", origin->owner);
    else
      tl_strbuf_appendf(out, ", \"block\": [%u, %u, %u]", origin->block[0], origin->block[1], origin->block[2]);
    tl_strbuf_append_c(out, ", \"in_tile\": ");
    print_place(origin->tile, array->rank, out);
    if (origin->thread >= 0)
      tl_strbuf_appendf(out, ", \"warp\": %d, \"lane\": %d", origin->thread / WARP, origin->thread % WARP);
    if (origin->place) {
      tl_strbuf_append_c(out, ", \"line\": ");
      tl_strbuf_append_json_c(out, origin->place);
    }
  }
  tl_strbuf_append_char(out, '}');
}

static void json_head(const tl_compared_output *output, tl_strbuf *out) {
  char described[160];
  const tl_compare_result *result = &output->result;
  tl_array_describe(&output->arg->array, described, sizeof described);
  tl_strbuf_append_c(out, "{\"name\": ");
  tl_strbuf_append_json_c(out, output->arg->name);
  tl_strbuf_appendf(out, ", \"type\": \"%s\", \"elements\": %llu, \"wrong\": %llu, \"rtol\": ", described,
                    (unsigned long long)result->count, (unsigned long long)result->num_failed);
  json_number(output->rtol, out);
  tl_strbuf_append_c(out, ", \"atol\": ");
  json_number(output->atol, out);
  if (output->label[0]) tl_strbuf_appendf(out, ", \"landing\": \"%s\"", output->label[0] == 'l' ? "late" : "early");
  if (!result->count) return;
  const tl_compare_element worst = {result->worst, result->value, result->reference, result->int_value,
                                    result->int_reference};
  tl_strbuf_append_c(out, ", \"worst_error\": ");
  json_number(result->error, out);
  tl_strbuf_append_c(out, ", \"worst\": ");
  json_element(output, &worst, NULL, out);
}

// ---- both

static void report_wrong(const tl_compared_output *output, tl_strbuf *lines, tl_strbuf *json) {
  const tl_run_arg *arg = output->arg;
  const tl_compare_result *result = &output->result;
  uint64_t max = result->num_failed < MAX_LOOKED_AT ? result->num_failed : MAX_LOOKED_AT;
  tl_compare_element *elements = tl_xcalloc(max + 1, sizeof *elements);
  uint64_t len =
      tl_compare_list(&arg->array, output->reference, result->is_int, output->rtol, output->atol, elements, max);
  uint64_t shown = len < MAX_SHOWN ? len : MAX_SHOWN;
  tl_element_origin origins[MAX_SHOWN];
  tl_where where;
  tl_writers_find(output->writers, arg, output->index, elements, len, origins, shown, &where);
  tl_strbuf_append_c(json, ", \"first\": [");
  for (uint64_t i = 0; i < shown; i++) {
    tl_strbuf_append_c(lines, "    ");
    tl_compare_print_index(&arg->array, elements[i].index, lines);
    tl_compare_print_element(&arg->array, &elements[i], result->is_int, lines);
    if (output->writers) print_origin(output->writers, &origins[i], arg->array.rank, lines);
    tl_strbuf_append_char(lines, '\n');
    if (i) tl_strbuf_append_c(json, ", ");
    json_element(output, &elements[i], &origins[i], json);
  }
  tl_strbuf_append_c(json, "]");
  if (arg->array.rank) {
    tl_strbuf text = {0};
    print_where(output, &where, len, &text);
    tl_strbuf_appendf(lines, "    %s\n", tl_strbuf_c(&text));
    tl_strbuf_append_c(json, ", \"where\": ");
    tl_strbuf_append_json(json, tl_strbuf_view(&text));
    tl_strbuf_fini(&text);
  }
  free(elements);
}

void tl_check_report_output(const tl_compared_output *output, tl_strbuf *lines, tl_strbuf *json) {
  bool failed = output->result.num_failed != 0;
  tl_strbuf_appendf(lines, "  %s%s", output->label, failed ? "FAILED " : "");
  tl_compare_print(&output->result, output->arg->name, &output->arg->array, lines);
  tl_strbuf_append_char(lines, '\n');
  json_head(output, json);
  if (failed) report_wrong(output, lines, json);
  tl_strbuf_append_char(json, '}');
}
