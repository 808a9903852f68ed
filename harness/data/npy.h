// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NumPy's .npy files (format versions 1.0 to 3.0). Types that NumPy lacks travel as raw bits: bf16 as uint16, f8e4m3
// and f8e5m2 as uint8, tf32 as float32, 4-bit types as uint8 with two elements a byte (low nibble first) along a halved
// last axis.
#ifndef TL_HARNESS_NPY_H
#define TL_HARNESS_NPY_H

#include "harness/data/array.h"
#include "support/strbuf.h"
#include "support/strview.h"

// Parses the bytes of a file. The array has the dtype of the file (convert it with tl_array_convert). Fortran order and
// big-endian elements are rearranged. INVALID_ARGUMENT says what is wrong; UNSUPPORTED names a type that tl-llc has
// not.
TL_MUST_USE tl_status tl_npy_parse(tl_str bytes, tl_array *out);
// A regular file of at most `max_bytes`.
TL_MUST_USE tl_status tl_npy_read(const char *path, uint64_t max_bytes, tl_array *out);

// The file's bytes (version 1.0), 64-byte aligned data.
TL_MUST_USE tl_status tl_npy_print(const tl_array *array, tl_strbuf *out);
TL_MUST_USE tl_status tl_npy_write(const char *path, const tl_array *array);

#endif
