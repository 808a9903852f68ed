// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ops in which lanes of a warp meet, against plain statements of the PTX ISA; and cp.async.
#include <math.h>

#include "emulator/ops/mma.h"
#include "emulator_op_runner.h"
#include "support/dtype.h"

// CUDA C++ Programming Guide, warp shuffle functions: segments of `width` lanes.
static int shuffle_model(const char *mode, int lane, int operand, int width, bool *in_range) {
  int start = lane / width * width, source;
  if (!strcmp(mode, "up"))
    source = lane - operand;
  else if (!strcmp(mode, "down"))
    source = lane + operand;
  else if (!strcmp(mode, "bfly"))
    source = lane ^ operand;
  else
    source = start + operand % width;
  // A butterfly may read from an earlier segment; only a later one is out of range.
  *in_range = !strcmp(mode, "bfly") ? source < start + width : source >= start && source < start + width;
  return *in_range ? source : lane;
}

START_TEST(shuffles) {
  static const char *const modes[] = {"up", "down", "bfly", "idx"}, *const types[] = {"i32", "f32", "i32p", "f32p"};
  static const char *const signatures[] = {"i(iiii)", "f(ifii)", "ib(iiii)", "fb(ifii)"};
  for (int m = 0; m < 4; m++) {
    for (int ty = 0; ty < 4; ty++) {
      char name[80];
      snprintf(name, sizeof name, "llvm.nvvm.shfl.sync.%s.%s", modes[m], types[ty]);
      for (int width = 4; width <= 32; width *= 8) {
        op_run run = {.name = name, .signature = signatures[ty], .threads = 64};
        int operand = width == 4 ? 3 : 9;
        // CUDA: c is (32 - width) << 8, or'd with 31 but for up.
        uint32_t c = (uint32_t)(32 - width) << 8 | (m == 0 ? 0 : 0x1f);
        for (uint32_t t = 0; t < 64; t++) {
          run.in[t][0] = 0xffffffffu;
          run.in[t][1] = 1000 + t;
          run.in[t][2] = (uint32_t)operand;
          run.in[t][3] = c;
        }
        op_must(&run);
        for (int t = 0; t < 64; t++) {
          bool in_range;
          int source = shuffle_model(modes[m], t % 32, operand, width, &in_range);
          ck_assert_msg((uint32_t)run.out[t][0] == (uint32_t)(1000 + t / 32 * 32 + source), "%s width %d lane %d: %u",
                        name, width, t, (uint32_t)run.out[t][0]);
          if (ty >= 2) ck_assert_int_eq((int)(run.out[t][1] & 1), in_range);
        }
      }
    }
  }
}
END_TEST

START_TEST(votes) {
  static const char *const kinds[] = {"all", "any", "uni", "ballot"};
  for (int k = 0; k < 4; k++) {
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.vote.%s.sync", kinds[k]);
    for (int pattern = 0; pattern < 3; pattern++) {
      op_run run = {.name = name, .signature = k == 3 ? "i(ib)" : "b(ib)"};
      uint32_t ballot = pattern == 0 ? 0 : pattern == 1 ? ~0u : 0x00f1000eu;
      for (int t = 0; t < 32; t++) {
        run.in[t][0] = 0xffffffffu;
        run.in[t][1] = ballot >> t & 1;
      }
      op_must(&run);
      uint32_t want = k == 0 ? pattern == 1 : k == 1 ? pattern != 0 : k == 2 ? pattern != 2 : ballot;
      uint32_t mask = k == 3 ? ~0u : 0xff;
      for (int t = 0; t < 32; t++) ck_assert_uint_eq((uint32_t)run.out[t][0] & mask, want);
    }
  }
}
END_TEST

START_TEST(reductions) {
  static const char *const kinds[] = {"add", "min", "max", "umin", "umax", "and", "or", "xor"};
  for (int k = 0; k < 8; k++) {
    char name[80];
    snprintf(name, sizeof name, "llvm.nvvm.redux.sync.%s", kinds[k]);
    op_run run = {.name = name, .signature = "i(ii)"};
    uint32_t want = 0;
    for (int t = 0; t < 32; t++) {
      uint32_t value = op_random() | (k == 5 ? 0x80u : 0);
      run.in[t][0] = value;
      run.in[t][1] = 0xffffffffu;
      if (t == 0)
        want = value;
      else if (k == 0)
        want += value;
      else if (k == 1)
        want = (int32_t)value < (int32_t)want ? value : want;
      else if (k == 2)
        want = (int32_t)value > (int32_t)want ? value : want;
      else if (k == 3)
        want = value < want ? value : want;
      else if (k == 4)
        want = value > want ? value : want;
      else if (k == 5)
        want &= value;
      else if (k == 6)
        want |= value;
      else
        want ^= value;
    }
    op_must(&run);
    for (int t = 0; t < 32; t++) ck_assert_uint_eq((uint32_t)run.out[t][0], want);
  }
}
END_TEST

START_TEST(elect_and_match) {
  op_run elect = {.name = "llvm.nvvm.elect.sync", .signature = "ib(i)", .threads = 64};
  for (int t = 0; t < 64; t++) elect.in[t][0] = 0xffffffffu;
  op_must(&elect);
  int leaders = 0;
  for (int t = 0; t < 64; t++) {
    leaders += (int)(elect.out[t][1] & 1);
    ck_assert(!(elect.out[t][1] & 1) || (int)(uint32_t)elect.out[t][0] == t % 32);
  }
  ck_assert_int_eq(leaders, 2);
  op_run match = {.name = "llvm.nvvm.match.any.sync.i32", .signature = "i(ii)"};
  for (uint32_t t = 0; t < 32; t++) {
    match.in[t][0] = 0xffffffffu;
    match.in[t][1] = t % 3;
  }
  op_must(&match);
  for (uint32_t t = 0; t < 32; t++) ck_assert_uint_eq((uint32_t)match.out[t][0], 0x49249249u << t % 3);
}
END_TEST

// Element (row, column) of matrix i as it lies in shared memory: row addresses are given in a scrambled order.
static uint32_t row_offset(uint32_t lane) {
  return (lane * 5 % 32) * 32 + 16 * (lane & 1);
}

static void expect_fragments(const op_run *run, uint32_t count, bool trans, const char *name) {
  for (uint32_t lane = 0; lane < 32; lane++) {
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t h = 0; h < 2; h++) {
        uint32_t row = lane / 4, column = 2 * (lane % 4) + h;
        uint32_t source = trans ? row_offset(8 * i + column) + 2 * row : row_offset(8 * i + row) + 2 * column;
        uint16_t want, got = (uint16_t)(run->out[lane][i] >> 16 * h);
        memcpy(&want, run->shared + source, 2);
        ck_assert_msg(got == want, "%s: lane %u register %u half %u: %04x, wanted %04x", name, lane, i, h, got, want);
      }
    }
  }
}

START_TEST(ldmatrix) {
  static const char *const signatures[] = {"", "i(p)", "ii(p)", "", "iiii(p)"};
  for (uint32_t count = 1; count <= 4; count *= 2) {
    for (int trans = 0; trans < 2; trans++) {
      char name[80];
      snprintf(name, sizeof name, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u%s.b16.p3", count, trans ? ".trans" : "");
      op_run run = {.name = name, .signature = signatures[count]};
      for (int i = 0; i < OP_SHARED_BYTES; i++) run.shared[i] = (uint8_t)op_random();
      // Lanes beyond the rows need give no valid address.
      for (uint32_t t = 0; t < 32; t++) run.in[t][0] = t < 8 * count ? row_offset(t) : 1u << 20;
      op_must(&run);
      expect_fragments(&run, count, trans, name);
      run.in[5][0] += 8;
      expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, name,
                     "lane 5 of warp 0: the row address is no multiple of 16", NULL);
      run.in[5][0] = OP_SHARED_BYTES;
      expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, name, "lane 5",
                     "at offset 2048 of shared memory, which has 2048");
    }
  }
}
END_TEST

START_TEST(stmatrix) {
  static const char *const signatures[] = {"", "(pi)", "(pii)", "", "(piiii)"};
  for (uint32_t count = 1; count <= 4; count *= 2) {
    for (int trans = 0; trans < 2; trans++) {
      char name[80];
      snprintf(name, sizeof name, "llvm.nvvm.stmatrix.sync.aligned.m8n8.x%u%s.b16.p3", count, trans ? ".trans" : "");
      op_run run = {.name = name, .signature = signatures[count]};
      for (uint32_t t = 0; t < 32; t++) {
        run.in[t][0] = t < 8 * count ? row_offset(t) : 1u << 20;
        for (uint32_t i = 0; i < count; i++) run.in[t][1 + i] = run.out[t][i] = op_random();
      }
      op_run copy = run;
      op_must(&run);
      memcpy(run.out, copy.out, sizeof run.out);
      expect_fragments(&run, count, trans, name);
    }
  }
}
END_TEST

static double element(tl_dtype dtype, uint64_t slot, int half) {
  return tl_dtype_load_float(dtype, &slot, (uint64_t)half);
}

START_TEST(mma) {
  static const struct {
    const char *name, *signature;
    int k;
    tl_dtype dtype;
  } cases[] = {{"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "ffff(EEEEEEffff)", 16, TL_DTYPE_F16},
               {"llvm.nvvm.mma.m16n8k16.row.col.bf16", "ffff(iiiiiiffff)", 16, TL_DTYPE_BF16},
               {"llvm.nvvm.mma.m16n8k8.row.col.f32.f32", "ffff(EEEffff)", 8, TL_DTYPE_F16},
               {"llvm.nvvm.mma.m16n8k8.row.col.bf16", "ffff(iiiffff)", 8, TL_DTYPE_BF16}};
  for (int c = 0; c < 4; c++) {
    op_run run = {.name = cases[c].name, .signature = cases[c].signature, .threads = 64};
    int k_words = cases[c].k / 8, words = 3 * k_words;
    for (int t = 0; t < 64; t++) {
      for (int w = 0; w < words; w++)
        for (int h = 0; h < 2; h++)
          tl_dtype_store_float(cases[c].dtype, &run.in[t][w], (uint64_t)h,
                               (double)(op_random() >> 8) / (1 << 23) - 1.0);
      for (int i = 0; i < 4; i++) run.in[t][words + i] = op_bits((float)(op_random() % 100) / 10);
    }
    op_must(&run);
    for (int t = 0; t < 64; t++) {
      for (int i = 0; i < 4; i++) {
        int warp = t / 32 * 32, row = t % 32 / 4 + 8 * (i / 2), column = 2 * (t % 4) + i % 2;
        double sum = (double)op_float(run.in[t][words + i]);
        for (int k = 0; k < cases[c].k; k++) {
          // Which lane and register holds A[row][k] and B[k][column]; PTX ISA, figures of the fragments.
          int lane_a = warp + row % 8 * 4 + k % 8 / 2, register_a = row / 8 + 2 * (k / 8);
          int lane_b = warp + column * 4 + k % 8 / 2, register_b = 2 * k_words + k / 8;
          sum += element(cases[c].dtype, run.in[lane_a][register_a], k % 2) *
                 element(cases[c].dtype, run.in[lane_b][register_b], k % 2);
        }
        ck_assert_msg(fabs((double)op_float(run.out[t][i]) - sum) < 1e-5, "%s: C[%d][%d] is %g, not %g", cases[c].name,
                      row, column, (double)op_float(run.out[t][i]), sum);
      }
    }
    run.threads = 48;
    expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, "warp 1 has fewer than 32 lanes", NULL, NULL);
  }
}
END_TEST

START_TEST(mma_portable_is_the_same) {
  for (int c = 0; c < 4; c++) {
    bool k8 = c & 1, bf16 = c & 2;
    tl_emu_mma_tiles a, b;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 16 * 8; i++) a.a[i / 8][i % 8] = op_random() & 0xbfffbfffu;  // neither infinite nor NaN
    for (int i = 0; i < 8 * 8; i++) a.b[i / 8][i % 8] = op_random() & 0xbfffbfffu;
    b = a;
    tl_emu_mma_multiply(&a, k8, bf16, true);
    tl_emu_mma_multiply(&b, k8, bf16, false);
    ck_assert_mem_eq(a.c, b.c, sizeof a.c);
  }
}
END_TEST

START_TEST(cp_async_shapes) {
  static const struct {
    const char *name;
    uint32_t bytes;
  } cases[] = {
      {"ca.shared.global.4", 4}, {"ca.shared.global.8", 8}, {"ca.shared.global.16", 16}, {"cg.shared.global.16", 16}};
  uint8_t *data = tl_emu_alloc(32 * 16, 16);
  for (int i = 0; i < 32 * 16; i++) data[i] = (uint8_t)(i * 11 + 1);
  for (int c = 0; c < 4; c++) {
    for (int zfill = 0; zfill < 2; zfill++) {
      char name[80];
      snprintf(name, sizeof name, "llvm.nvvm.cp.async.%s%s", cases[c].name, zfill ? ".s" : "");
      uint32_t bytes = cases[c].bytes;
      for (int late = 0; late < 2; late++) {
        op_run run = {.name = name,
                      .signature = zfill ? "(pgi)" : "(pg)",
                      .options = {.landing = late ? TL_LANDING_LATE : TL_LANDING_EARLY}};
        for (uint32_t t = 0; t < 32; t++) {
          run.in[t][0] = t * 16;
          run.in[t][1] = (uintptr_t)(data + t * bytes);
          run.in[t][2] = t % (bytes + 1);
          if (zfill && t % (bytes + 1) == 0) run.in[t][1] = 0;  // nothing is read
        }
        op_must(&run);
        for (uint32_t t = 0; t < 32; t++) {
          for (uint32_t i = 0; i < 16; i++) {
            uint32_t valid = zfill ? t % (bytes + 1) : bytes;
            // Without a wait a late copy never lands: its destination is poison.
            uint8_t want = i >= bytes ? 0 : late ? 0xff : i < valid ? data[t * bytes + i] : 0;
            ck_assert_msg(run.shared[t * 16 + i] == want, "%s: thread %u byte %u: %02x, wanted %02x", name, t, i,
                          run.shared[t * 16 + i], want);
          }
        }
      }
    }
  }
  op_run run = {.name = "llvm.nvvm.cp.async.cg.shared.global.16", .signature = "(pg)"};
  for (uint32_t t = 0; t < 32; t++) {
    run.in[t][0] = t * 16;
    run.in[t][1] = (uintptr_t)(data + t * 16);
  }
  run.in[7][0] = 8;
  expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, "addresses must be multiples of 16", "thread 7", NULL);
  run.in[7][0] = OP_SHARED_BYTES;
  expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, "offset 2048 of shared memory", "thread 7", NULL);
  run.in[7][0] = 7 * 16;
  run.in[7][1] = (uintptr_t)(data + 32 * 16);
  expect_failure(op_try(&run), TL_STATUS_CHECK_FAILED, "invalid read 0 bytes past the end", "thread 7",
                 "llvm.nvvm.cp.async.cg.shared.global.16 (call");
  tl_emu_free(data);
}
END_TEST

static void run_async(const char *kernel_name, tl_landing landing, int32_t *in, uint32_t out_columns, int32_t *out) {
  tl_emu_kernel *kernel = must_create("async.ll", kernel_name, (kernel_shape){2, 32, 0});
  for (int i = 0; i < 512; i++) in[i] = 100 + i;
  memset(out, 0, out_columns * 128);
  tl_emu_options options = {.landing = landing, .threads = 1};
  uint32_t grid[3] = {1, 1, 1};
  expect_ok(tl_emu_launch(kernel, grid, (void *[]){&in, &out}, &options, NULL));
  tl_emu_kernel_destroy(kernel);
}

START_TEST(cp_async_groups) {
  int32_t *in = tl_emu_alloc(2048, 16), *out = tl_emu_alloc(6 * 128, 4);
  for (int late = 0; late < 2; late++) {
    tl_landing landing = late ? TL_LANDING_LATE : TL_LANDING_EARLY;
    run_async("groups", landing, in, 6, out);
    static const int stages[] = {0, 1, 1, 2, 3, 3};
    static const bool landed[] = {true, false, true, true, false, true};
    for (int c = 0; c < 6; c++)
      for (int t = 0; t < 32; t++)
        ck_assert_int_eq(out[c * 32 + t], landed[c] || !late ? 100 + stages[c] * 128 + 4 * t : -1);
    run_async("uncommitted", landing, in, 2, out);
    for (int t = 0; t < 32; t++) {
      ck_assert_int_eq(out[t], late ? -1 : 100 + 4 * t);
      ck_assert_int_eq(out[32 + t], 100 + 4 * t);
    }
    run_async("source_changes", landing, in, 1, out);
    for (int t = 0; t < 32; t++) ck_assert_int_eq(out[t], late ? -5 : 100 + 4 * t);
    run_async("never_waits", landing, in, 1, out);
    for (int t = 0; t < 32; t++) ck_assert_int_eq(out[t], late ? -1 : 100 + 4 * t);
    run_async("many", landing, in, 1, out);
    for (int t = 0; t < 32; t++) ck_assert_int_eq(out[t], 100 + 3 * 128 + 4 * t);
  }
  tl_emu_free(in);
  tl_emu_free(out);
}
END_TEST

// Threads below 32 arrive without waiting, the others wait; in the forms with and without .aligned.
START_TEST(arrive_and_sync) {
  static const char *const aligned[] = {".aligned", ""};
  for (int a = 0; a < 2; a++) {
    char text[1500];
    snprintf(text, sizeof text,
             "@flag = internal addrspace(3) global [32 x i32] undef, align 4\n"
             "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
             "declare void @llvm.nvvm.barrier.cta.sync%s.count(i32, i32)\n"
             "declare void @llvm.nvvm.barrier.cta.arrive%s.count(i32, i32)\n"
             "declare void @llvm.nvvm.barrier.cta.sync%s.all(i32)\n"
             "define ptx_kernel void @k(ptr addrspace(1) %%out) {\n"
             " %%tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n %%lane = and i32 %%tid, 31\n"
             " %%s = getelementptr i32, ptr addrspace(3) @flag, i32 %%lane\n"
             " %%c = icmp ult i32 %%tid, 32\n br i1 %%c, label %%a, label %%b\n"
             "a:\n store i32 %%tid, ptr addrspace(3) %%s\n"
             " call void @llvm.nvvm.barrier.cta.arrive%s.count(i32 3, i32 64)\n br label %%end\n"
             "b:\n call void @llvm.nvvm.barrier.cta.sync%s.count(i32 3, i32 64)\n"
             " %%v = load i32, ptr addrspace(3) %%s\n"
             " %%o = getelementptr i32, ptr addrspace(1) %%out, i32 %%lane\n"
             " store i32 %%v, ptr addrspace(1) %%o\n br label %%end\n"
             "end:\n call void @llvm.nvvm.barrier.cta.sync%s.all(i32 0)\n ret void\n}\n",
             aligned[a], aligned[a], aligned[a], aligned[a], aligned[a], aligned[a]);
    tl_emu_kernel *kernel = NULL;
    expect_ok(create_from_text(text, "k", (kernel_shape){1, 64, 0}, &kernel));
    for (uint32_t seed = 0; seed < 6; seed++) {
      uint32_t grid[3] = {1, 1, 1}, *out = tl_emu_alloc(128, 4);
      tl_emu_options options = {.threads = 1, .seed = seed};
      expect_ok(tl_emu_launch(kernel, grid, (void *[]){&out}, &options, NULL));
      for (uint32_t t = 0; t < 32; t++) ck_assert_uint_eq(out[t], t);
      tl_emu_free(out);
    }
    tl_emu_kernel_destroy(kernel);
  }
}
END_TEST

static void add_tests(TCase *cases) {
  tcase_add_test(cases, shuffles);
  tcase_add_test(cases, votes);
  tcase_add_test(cases, reductions);
  tcase_add_test(cases, elect_and_match);
  tcase_add_test(cases, ldmatrix);
  tcase_add_test(cases, stmatrix);
  tcase_add_test(cases, mma);
  tcase_add_test(cases, mma_portable_is_the_same);
  tcase_add_test(cases, cp_async_shapes);
  tcase_add_test(cases, cp_async_groups);
  tcase_add_test(cases, arrive_and_sync);
}

int main(void) {
  return run_suite("emulator warp", add_tests);
}
