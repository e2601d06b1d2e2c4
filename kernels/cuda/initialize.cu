// Implements kernels/ops/initialize.h on CUDA, with the bits of the CPU: no operations are fused.
//
// A thread makes four elements from one block of random words: some 350 instructions, most of them
// fp64, for 8 to 16 bytes written. Arithmetic is the bound: an H200 needs a few milliseconds for a
// billion elements, devices with few fp64 units (sm_89, sm_120) a few hundred.
#include "kernels/ops/initialize.h"

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/parameter_output.cuh"
#include "kernels/cuda/random.cuh"

namespace strata::cuda {
namespace {

constexpr int kPack = 4;  // elements that share a block of random words

template <typename T>
struct InitializeArguments {
  T* out;
  kernels::InitialValues initializer;
  std::uint64_t first;  ///< element of the tensor at which `out` begins; packs count from its start
  bool packs;           ///< packs are aligned and may be stored at once
  FlatRange range;
};

/// Converts as store_initial_values does.
template <typename T>
STRATA_DEVICE T stored(float value) {
  if constexpr (std::is_same_v<T, std::int16_t>)
    return kernels::master_remainder(value);
  else
    return from_master<T>(value);
}

template <typename T>
struct Initialize {
  static constexpr int kThreads = kFlatThreads;

  static STRATA_DEVICE void values_of(float (&values)[kPack],
                                      const kernels::InitialValues& initializer,
                                      std::uint64_t block) {
    if (initializer.deviation == 0) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) values[i] = initializer.constant;
      return;
    }
    const kernels::NormalBlock numbers =
        kernels::normal_numbers(random_words(initializer.source, block));
#pragma unroll
    for (int i = 0; i < kPack; ++i) values[i] = initializer.scaled(numbers.v[i]);
  }

  static STRATA_DEVICE void run(const InitializeArguments<T>& x) {
    const std::int64_t pack = std::int64_t{block().x} * kThreads + thread();
    const std::int64_t begin = pack * kPack - x.range.lead;
    if (begin >= x.range.count) return;
    float values[kPack];
    values_of(values, x.initializer, x.first / kPack + static_cast<std::uint64_t>(pack));
    Pack<T, kPack> rounded;
#pragma unroll
    for (int i = 0; i < kPack; ++i) rounded.v[i] = stored<T>(values[i]);
    if (x.packs && begin >= 0 && begin + kPack <= x.range.count) {
      store<kPack>(x.out + begin, rounded);
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (begin + i >= 0 && begin + i < x.range.count) x.out[begin + i] = rounded.v[i];
  }
};

}  // namespace

void initialize(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor& out = call.outputs[0];
  const std::int64_t first = call.attributes.integer("first", 0);
  const auto launch_as = [&](auto element) {
    using T = decltype(element);
    FlatRange range{.count = out.elements(), .lead = first % kPack};
    const auto pack_bytes = static_cast<std::uintptr_t>(kPack * sizeof(T));
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(out.data) -
                                 static_cast<std::uintptr_t>(range.lead) * sizeof(T);
    launch<Initialize<T>>(
        stream, flat_launch(range, kPack),
        InitializeArguments<T>{reinterpret_cast<T*>(out.data),
                               kernels::InitialValues::from(call.attributes),
                               static_cast<std::uint64_t>(first), start % pack_bytes == 0, range});
  };
  if (out.dtype() == DType::i16)
    launch_as(std::int16_t{});
  else
    with_float_type(out.dtype(), launch_as);
}

}  // namespace strata::cuda
