// Random numbers and dropout in kernels. The numbers are those of kernels/math/philox.h, whose
// constexpr functions also run on the device; only the product of two words is replaced.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/divisor.h"
#include "kernels/device/attributes.h"
#include "kernels/device/tensor.h"
#include "kernels/math/philox.h"

namespace strata::cuda {

/// Multiplies two words as kernels::WordProduct does, in one instruction; the compiler makes two of
/// the C++ form. It is constexpr so that philox(), which is, may call it on the device.
struct DeviceProduct {
  constexpr std::uint64_t operator()(std::uint32_t a, std::uint32_t b) const {
#if defined(__CUDA_ARCH__)
    std::uint64_t product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
#else
    return std::uint64_t{a} * b;
#endif
  }
};

/// Returns source.words(block), on the device.
STRATA_DEVICE kernels::PhiloxBlock random_words(const kernels::RandomSource& source,
                                                std::uint64_t block) {
  return source.words(block, DeviceProduct{});
}

/// The dropout of one call of an operation, as an argument of its kernel.
struct DropoutArguments {
  const std::int64_t* rng = nullptr;  ///< in device memory: seed, step, samples
  std::int64_t columns = 0, key = 0;
  Divisor sequence;
  std::uint32_t threshold = 0;
  float scale = 1;
};

/// Reads the attributes p, key and sequence; rows have `columns` elements.
inline DropoutArguments dropout_arguments(const kernels::Tensor& rng,
                                          const kernels::Attributes& attributes,
                                          std::int64_t columns) {
  const double p = attributes.real("p");
  return {.rng = rng.row<const std::int64_t>(),
          .columns = columns,
          .key = attributes.integer("key"),
          .sequence = Divisor(attributes.integer("sequence")),
          .threshold = kernels::dropout_threshold(p),
          .scale = kernels::dropout_scale(p)};
}

/// The source and position of the random numbers of an element; its neighbours' follow.
struct DropoutPlace {
  kernels::RandomSource source;
  std::uint64_t position;
};

/// Returns the place of element (row, col). Reads `rng`: call it where operands are read.
STRATA_DEVICE DropoutPlace dropout_place(const DropoutArguments& dropout, std::int64_t row,
                                         std::int64_t col) {
  const auto [sample, in_sample] = dropout.sequence.divide(row);
  return {
      kernels::RandomSource(dropout.rng[0], dropout.rng[1], dropout.rng[2 + sample], dropout.key),
      static_cast<std::uint64_t>(in_sample * dropout.columns + col)};
}

/// Applies dropout: values[i] is the element i after `place`. N is 1, or a multiple of 4 like the
/// position, so that four elements share one block of random words.
template <int N>
STRATA_DEVICE void drop(float (&values)[N], const DropoutArguments& dropout,
                        const DropoutPlace& place) {
  static_assert(N == 1 || N % 4 == 0);
  if constexpr (N == 1) {
    const kernels::PhiloxBlock words = random_words(place.source, place.position / 4);
    // Selecting avoids words[position % 4]: registers cannot be indexed at run time.
    const std::uint32_t low = place.position % 2 == 0 ? words[0] : words[1];
    const std::uint32_t high = place.position % 2 == 0 ? words[2] : words[3];
    const std::uint32_t word = place.position % 4 < 2 ? low : high;
    values[0] = word >= dropout.threshold ? values[0] * dropout.scale : 0;
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const kernels::PhiloxBlock words =
          random_words(place.source, place.position / 4 + static_cast<unsigned>(i / 4));
#pragma unroll
      for (int j = 0; j < 4; ++j)
        values[i + j] = words[static_cast<std::size_t>(j)] >= dropout.threshold
                            ? values[i + j] * dropout.scale
                            : 0;
    }
  }
}

}  // namespace strata::cuda
