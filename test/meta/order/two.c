// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What order.sh must find; not compiled.
static tl_value *grown(tl_builder *b, tl_value *x) {
  return tl_build_binary(b, TL_OP_ADD, x, x);
}

static tl_value *both(tl_builder *b, tl_value *x, bool once) {
  tl_value *one =
      tl_build_binary(b, TL_OP_ADD, once ? grown(b, x) : grown(b, grown(b, x)), x);  // grown(b, x), grown(b, x)
  return tl_build_binary(b, TL_OP_ADD, grown(b, one), f((tl_ignored)x, tl_build_index(b, 1)));
}
