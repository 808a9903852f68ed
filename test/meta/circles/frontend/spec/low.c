// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
int tl_meta_high(int depth);
int tl_meta_low(int depth);

int tl_meta_low(int depth) {
  return depth ? tl_meta_high(depth - 1) : 0;
}
