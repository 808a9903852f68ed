// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel or chain as C: a header and a source with PTX, cubins and a typed function that checks its arguments as the
// manifest says and launches by the driver, without libtl (docs/embedding.md, decisions/0029).
#ifndef TL_HARNESS_C_SOURCE_H
#define TL_HARNESS_C_SOURCE_H

#include "support/manifest.h"

// What was compiled for one target. Borrowed.
typedef struct tl_c_image {
  const tl_manifest *manifest;
  tl_str ptx;
  tl_str cubin;  // empty: none
} tl_c_image;

typedef struct tl_c_request {
  const tl_c_image *images;  // one a target, of the same kernel (the first of each manifest) or chain
  uint32_t num_images;
  const char *name;         // what the functions begin with: an identifier
  const char *header_name;  // what the source includes
  const char *spec_name;    // of the spec's file, for the comment
  bool has_ffi;             // also __tvm_ffi_NAME
} tl_c_request;

// UNSUPPORTED says what of the kernel has no form in C.
TL_MUST_USE tl_status tl_c_source_write(const tl_c_request *request, tl_strbuf *out_header, tl_strbuf *out_source);

#endif
