// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values and structures of cublasLt.h that are used, without that header.
#ifndef TL_HARNESS_CUBLASLT_TYPES_H
#define TL_HARNESS_CUBLASLT_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef struct tl_cublaslt_algorithm {
  uint64_t data[8];
} tl_cublaslt_algorithm;

typedef struct tl_cublaslt_choice {
  tl_cublaslt_algorithm algorithm;
  size_t workspace_bytes;
  unsigned state;
  float waves;
  int reserved[4];
} tl_cublaslt_choice;

enum {
  TL_CUBLASLT_TYPE_F32 = 0,
  TL_CUBLASLT_TYPE_F64 = 1,
  TL_CUBLASLT_TYPE_F16 = 2,
  TL_CUBLASLT_TYPE_I8 = 3,
  TL_CUBLASLT_TYPE_I32 = 10,
  TL_CUBLASLT_TYPE_BF16 = 14,
  TL_CUBLASLT_TYPE_F8E4M3 = 28,
  TL_CUBLASLT_TYPE_F8E5M2 = 29,
  TL_CUBLASLT_COMPUTE_F32 = 68,
  TL_CUBLASLT_COMPUTE_F64 = 70,
  TL_CUBLASLT_COMPUTE_I32 = 72,
  TL_CUBLASLT_COMPUTE_TF32 = 77,
  TL_CUBLASLT_DESC_TRANSA = 3,
  TL_CUBLASLT_DESC_TRANSB = 4,
  TL_CUBLASLT_PREFERENCE_MAX_WORKSPACE = 1
};

#endif
