// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clusters through cooperative groups, bulk copies through inline PTX.
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_reduce(const int *x, int *y) {
  __shared__ int s;
  cg::cluster_group c = cg::this_cluster();
  if (threadIdx.x == 0) s = 0;
  c.sync();
  int *d = c.map_shared_rank(&s, 0);
  atomicAdd(d, x[blockIdx.x * blockDim.x + threadIdx.x]);
  c.sync();
  if (c.block_rank() == 0 && threadIdx.x == 0) y[blockIdx.x / 4] = s;
}

extern "C" __global__ void bulk(const float *x, float *y, int n) {
  __shared__ alignas(128) float s[256];
  __shared__ alignas(8) uint64_t bar;
  uint32_t b = (uint32_t)__cvta_generic_to_shared(&bar), sa = (uint32_t)__cvta_generic_to_shared(s);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int ph = 0;
  for (int i = blockIdx.x; i < n / 256; i += gridDim.x) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(1024) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sa),
                   "l"(x + i * 256), "r"(1024), "r"(b)
                   : "memory");
    }
    asm volatile("{\n.reg .pred p;\nL: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra L;\n}" ::"r"(b),
                 "r"(ph)
                 : "memory");
    ph ^= 1;
    float v = s[255 - threadIdx.x];
    __syncthreads();
    s[threadIdx.x] = v * 3;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + i * 256), "r"(sa), "r"(1024)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
  }
}

// Copies of CUDA C++ libraries onto barriers of theirs.
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>

extern "C" __global__ void memcpy_async(const int *x, int *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> b;
  __shared__ alignas(16) int s[256];
  auto g = cooperative_groups::this_thread_block();
  if (threadIdx.x == 0) init(&b, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(g, s, x, cuda::aligned_size_t<16>(1024), b);
  b.arrive_and_wait();
  y[threadIdx.x] = s[threadIdx.x ^ 255];
  cooperative_groups::sync(g);
  cooperative_groups::memcpy_async(g, s, y, 512);
  cooperative_groups::wait(g);
  y[256 + threadIdx.x] = s[threadIdx.x & 127];
}
