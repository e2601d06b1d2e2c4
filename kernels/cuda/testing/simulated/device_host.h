// The functions of kernels/cuda/device.cuh for a C++ compiler: they act on the simulated block
// (simulation.h). device_nvcc.cuh documents each of them.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/cuda/testing/simulated/simulation.h"

#define STRATA_DEVICE inline

namespace strata::cuda {

inline int thread() { return host::self().index; }
inline int lane() { return host::self().index % kWarp; }
inline int warp() { return host::self().index / kWarp; }
inline Index3 block() { return host::self().block().index(); }
inline Index3 grid() { return host::self().block().grid(); }
inline std::byte* shared_memory() { return host::self().block().shared_memory(); }
inline void require(bool holds) {
  if (!holds) host::self().block().fail("what the kernel requires does not hold");
}
inline void sync_block() { host::self().block().sync_block(); }
inline void sync_warp() { host::self().block().exchange(host::WarpOperation::barrier, 0, 0); }

namespace host {
template <typename T>
std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
}  // namespace host

template <typename T>
T shuffle_xor(T value, int mask) {
  const host::WarpWords words =
      host::self().block().exchange(host::WarpOperation::shuffle_xor, mask, host::to_bits(value));
  return host::from_bits<T>(words[static_cast<std::size_t>((lane() ^ mask) % kWarp)]);
}
template <typename T>
T shuffle_from(T value, int source) {
  const host::WarpWords words =
      host::self().block().exchange(host::WarpOperation::shuffle_from, 0, host::to_bits(value));
  return host::from_bits<T>(words[static_cast<std::size_t>(source % kWarp)]);
}
inline std::uint32_t ballot(bool predicate) {
  const host::WarpWords words =
      host::self().block().exchange(host::WarpOperation::ballot, 0, predicate ? 1u : 0u);
  std::uint32_t bits = 0;
  for (int i = 0; i < kWarp; ++i)
    bits |= static_cast<std::uint32_t>(words[static_cast<std::size_t>(i)]) << i;
  return bits;
}

template <int N, typename T>
Pack<T, N> load(const T* from) {
  host::check_alignment(from, sizeof(T) * N);
  Pack<T, N> pack;
  std::memcpy(pack.v, from, sizeof pack.v);
  return pack;
}
template <int N, typename T>
Pack<T, N> load_once(const T* from) {
  return load<N>(from);
}
template <int N, typename T>
void store(T* to, const Pack<T, N>& pack) {
  host::check_alignment(to, sizeof(T) * N);
  std::memcpy(to, pack.v, sizeof pack.v);
}

inline void atomic_add(std::int64_t* to, std::int64_t value) {
  *to = static_cast<std::int64_t>(static_cast<std::uint64_t>(*to) +
                                  static_cast<std::uint64_t>(value));
}
inline void atomic_add(std::int32_t* to, std::int32_t value) {
  *to = static_cast<std::int32_t>(static_cast<std::uint32_t>(*to) +
                                  static_cast<std::uint32_t>(value));
}

inline float exp2_fast(float x) { return std::exp2(x); }

inline void copy_async16(void* to_shared, const void* from, bool valid = true) {
  host::self().copy_async(to_shared, valid ? from : nullptr, 16);
}
inline void copy_async_commit() { host::self().commit_copies(); }
template <int N>
void copy_async_wait() {
  host::self().wait_copies(N);
}

inline void load_matrix4(std::uint32_t (&r)[4], const void* row) {
  host::load_matrix4(r, row, false);
}
inline void load_matrix4_transposed(std::uint32_t (&r)[4], const void* row) {
  host::load_matrix4(r, row, true);
}
inline void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  host::multiply(d, a, b, host::HalfKind::bf16);
}
inline void mma_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  host::multiply(d, a, b, host::HalfKind::f16);
}

/// Enqueues the kernel on the stream. Ends the process with the kernel's name if the kernel breaks
/// a rule of CUDA; simulation.h says which rules are checked.
template <typename Body, typename Arguments>
void launch(kernels::Stream& stream, const LaunchShape& shape, const Arguments& arguments) {
  static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= 4096);
  SimulatedStream& on = simulated(stream);
  on.enqueue(
      [&on, launch = host::GridLaunch{__PRETTY_FUNCTION__, shape, Body::kThreads}, arguments] {
        host::run_grid(
            on, launch, [](const void* of) { Body::run(*static_cast<const Arguments*>(of)); },
            &arguments);
      });
}

}  // namespace strata::cuda
