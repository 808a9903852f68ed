// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts in which a warp holds 8 by 8 matrices as stmatrix takes them (PTX ISA, "stmatrix").
#include "ir/layout/layout.h"

enum { MATRIX = 8, PAIR = 2 };

static bool is_mode(const tl_layout_mode *mode, tl_layout_axis axis, int32_t size, int32_t stride) {
  return mode->axis == axis && mode->size == size && mode->stride == stride && mode->dim != TL_DIM_NONE;
}

// The two factors of the lanes: 4 pairs of one row, 8 rows.
static bool find_dims(const tl_layout *layout, tl_matrix_form *out) {
  const tl_layout_mode *lanes[2];
  int32_t count = 0;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis != TL_AXIS_LANE || mode->size == 1) continue;
    if (count == 2) return false;
    lanes[count++] = mode;
  }
  if (count != 2 || !is_mode(lanes[0], TL_AXIS_LANE, MATRIX / PAIR, PAIR) ||
      !is_mode(lanes[1], TL_AXIS_LANE, MATRIX, 1) || lanes[0]->dim == lanes[1]->dim)
    return false;
  out->column_dim = lanes[0]->dim;
  out->row_dim = lanes[1]->dim;
  return true;
}

static void add_unit(tl_matrix_form *form, int32_t dim, int32_t stride) {
  if (form->num_units < 2) form->units[form->num_units++] = (tl_matrix_unit){dim, stride};
}

bool tl_layout_matrix_form(const tl_layout *layout, tl_matrix_form *out) {
  bool has_pair = false;
  *out = (tl_matrix_form){0};
  if (tl_layout_has_padding(layout) || tl_layout_is_replicated(layout) || !find_dims(layout, out)) return false;
  for (int32_t m = 0; m < layout->num_modes; m++) {
    const tl_layout_mode *mode = &layout->modes[m];
    if (mode->axis == TL_AXIS_LANE || mode->size == 1) continue;
    if (mode->dim == TL_DIM_NONE) return false;
    if (is_mode(mode, TL_AXIS_REGISTER, PAIR, 1) && mode->dim == out->column_dim) {
      has_pair = true;
      continue;
    }
    bool is_across = mode->dim == out->column_dim || mode->dim == out->row_dim;
    if (is_across && mode->stride % MATRIX != 0) return false;
    if (mode->axis != TL_AXIS_REGISTER) continue;
    if (mode->size % 2 == 0) add_unit(out, mode->dim, mode->stride);
    if (mode->size % 4 == 0) add_unit(out, mode->dim, 2 * mode->stride);
  }
  return has_pair;
}

bool tl_matrix_begins(const tl_matrix_form *form, const int32_t *coord) {
  if (coord[form->column_dim] % PAIR != 0) return false;
  for (int32_t u = 0; u < form->num_units; u++)
    if (coord[form->units[u].dim] / form->units[u].stride % 2 != 0) return false;
  return true;
}

tl_layout tl_matrix_rows(const tl_layout *layout, const tl_matrix_form *form, bool transposed) {
  tl_layout rows = *layout;
  rows.num_modes = 0;
  rows.modes[rows.num_modes++] =
      (tl_layout_mode){TL_AXIS_LANE, MATRIX, transposed ? form->column_dim : form->row_dim, 1};
  for (int32_t u = 0; u < 2; u++) {
    bool has_unit = u < form->num_units;
    rows.modes[rows.num_modes++] = (tl_layout_mode){TL_AXIS_LANE, 2, has_unit ? form->units[u].dim : TL_DIM_NONE,
                                                    has_unit ? form->units[u].stride : 0};
  }
  for (int32_t m = 0; m < layout->num_modes; m++)
    if (layout->modes[m].axis == TL_AXIS_WARP) rows.modes[rows.num_modes++] = layout->modes[m];
  return rows;
}
