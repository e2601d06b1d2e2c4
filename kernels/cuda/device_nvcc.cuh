// The functions of kernels/cuda/device.cuh for nvcc: thin wrappers of CUDA and PTX.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/cuda_stream.h"

#define STRATA_DEVICE __device__ __forceinline__

namespace strata::cuda {

/// Thread index in its block.
STRATA_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
STRATA_DEVICE int lane() { return static_cast<int>(threadIdx.x % kWarp); }
STRATA_DEVICE int warp() { return static_cast<int>(threadIdx.x / kWarp); }
STRATA_DEVICE Index3 block() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
STRATA_DEVICE Index3 grid() { return {gridDim.x, gridDim.y, gridDim.z}; }

/// Start of the block's dynamic shared memory, 128-byte aligned.
STRATA_DEVICE std::byte* shared_memory() {
  extern __shared__ __align__(128) unsigned char strata_shared[];
  return reinterpret_cast<std::byte*>(strata_shared);
}

/// Stops the grid unless `holds`; the host then gets a CUDA error.
STRATA_DEVICE void require(bool holds) {
  if (!holds) __trap();
}

/// A barrier for the block's threads: shared and global writes before it are seen after it.
STRATA_DEVICE void sync_block() { __syncthreads(); }
/// A barrier for all lanes of the warp.
STRATA_DEVICE void sync_warp() { __syncwarp(); }

/// Warp shuffles; all 32 lanes take part. T has 4 or 8 bytes.
template <typename T>
STRATA_DEVICE T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(kWholeWarp, value, mask);
}
template <typename T>
STRATA_DEVICE T shuffle_from(T value, int source) {
  return __shfl_sync(kWholeWarp, value, source);
}
STRATA_DEVICE std::uint32_t ballot(bool predicate) { return __ballot_sync(kWholeWarp, predicate); }

// Packs are stored as one integer: nvcc stores a struct, even uint4, element by element.
template <std::size_t kBytes>
struct PackBits;
template <>
struct PackBits<1> {
  using Type = std::uint8_t;
};
template <>
struct PackBits<2> {
  using Type = std::uint16_t;
};
template <>
struct PackBits<4> {
  using Type = std::uint32_t;
};
template <>
struct PackBits<8> {
  using Type = std::uint64_t;
};
template <>
struct PackBits<16> {
  __extension__ using Type = unsigned __int128;
};

template <int N, typename T>
STRATA_DEVICE Pack<T, N> load(const T* from) {
  return *reinterpret_cast<const Pack<T, N>*>(from);
}
/// Loads what is read only once, without displacing what the caches hold.
template <int N, typename T>
STRATA_DEVICE Pack<T, N> load_once(const T* from) {
  if constexpr (sizeof(T) * N == 16) {
    const int4 bits = __ldcs(reinterpret_cast<const int4*>(from));
    return *reinterpret_cast<const Pack<T, N>*>(&bits);
  } else {
    return load<N>(from);
  }
}
template <int N, typename T>
STRATA_DEVICE void store(T* to, const Pack<T, N>& pack) {
  // Joins words where there are any: registers are words, and smaller parts take more instructions.
  constexpr std::size_t kPart = sizeof(pack) < 4 ? sizeof(T) : 4;
  constexpr int kParts = static_cast<int>(sizeof(pack) / kPart);
  using Bits = typename PackBits<sizeof(pack)>::Type;
  struct Parts {
    typename PackBits<kPart>::Type v[kParts];
  };
  const auto parts = std::bit_cast<Parts>(pack);
  Bits bits = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) bits |= Bits{parts.v[i]} << (8 * static_cast<int>(kPart) * i);
  *reinterpret_cast<Bits*>(to) = bits;
}

/// Adds to an integer in memory to which other threads add, too; any order gives the same bits.
STRATA_DEVICE void atomic_add(std::int64_t* to, std::int64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}
STRATA_DEVICE void atomic_add(std::int32_t* to, std::int32_t value) { atomicAdd(to, value); }

/// Returns 2^x with an error of about two units in the last place; subnormal results become zero,
/// and -infinity gives 0. It is one instruction; exp2f takes four.
STRATA_DEVICE float exp2_fast(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

STRATA_DEVICE std::uint32_t shared_address(const void* in_shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(in_shared));
}

/// Starts to copy 16 aligned bytes from global to shared memory (sm_80), or zeros if not `valid`.
/// This thread sees them after its copy_async_wait, others after a barrier that follows it.
STRATA_DEVICE void copy_async16(void* to_shared, const void* from, bool valid = true) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to_shared)),
               "l"(from), "r"(bytes)
               : "memory");
}
STRATA_DEVICE void copy_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until at most N of this thread's committed groups of copies are still under way.
template <int N>
STRATA_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/// Loads four 8x8 matrices of 16-bit elements from shared memory (PTX ISA, ldmatrix). Lane l passes
/// the address of row l % 8 of matrix l / 8, 16-byte aligned. Its r[i] becomes elements 2 (l % 4)
/// and 2 (l % 4) + 1 of row l / 4 of matrix i.
STRATA_DEVICE void load_matrix4(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
/// Loads as load_matrix4 does, but r[i] gets elements of the transposed matrix i.
STRATA_DEVICE void load_matrix4_transposed(std::uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Adds the product of a [16, 16] and b [16, 8] to d, all spread over one warp, in fp32 (PTX ISA,
/// mma.m16n8k16). With g = lane / 4 and t = lane % 4, a lane holds of each matrix:
///   a[0] row g, columns 2t and 2t+1; a[1] row g+8; a[2] and a[3] these rows, columns 2t+8 and 2t+9
///   b[0] column g, rows 2t and 2t+1; b[1] rows 2t+8 and 2t+9
///   d[0], d[1] row g, columns 2t and 2t+1; d[2], d[3] row g+8
STRATA_DEVICE void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                            const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
STRATA_DEVICE void mma_f16(float (&d)[4], const std::uint32_t (&a)[4],
                           const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// The number of blocks that must fit into a multiprocessor at once, which bounds registers:
/// Body::kLeastBlocks if the body has it, else no bound (0).
template <typename Body>
consteval int least_blocks() {
  if constexpr (requires { Body::kLeastBlocks; })
    return Body::kLeastBlocks;
  else
    return 0;
}

template <typename Body, typename Arguments>
__global__ void __launch_bounds__(Body::kThreads, least_blocks<Body>())
    kernel(const __grid_constant__ Arguments arguments) {
  Body::run(arguments);
}

/// Enqueues the kernel on `stream`. Throws HostError with CUDA's reason if the launch is refused.
template <typename Body, typename Arguments>
void launch(kernels::Stream& stream, const LaunchShape& shape, const Arguments& arguments) {
  static_assert(sizeof(Arguments) <= 4096 && Body::kThreads % kWarp == 0 && Body::kThreads <= 1024);
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  constexpr auto* entry = &kernel<Body, Arguments>;
  if (shape.shared_bytes > 48 * 1024)
    allow_shared_memory(reinterpret_cast<const void*>(entry), shape.shared_bytes);
  kernel<Body, Arguments>
      <<<dim3(shape.grid.x, shape.grid.y, shape.grid.z), Body::kThreads,
         static_cast<std::size_t>(shape.shared_bytes), cuda(stream).get()>>>(arguments);
  check_launch(__PRETTY_FUNCTION__);
}

}  // namespace strata::cuda
