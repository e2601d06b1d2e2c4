// Pieces of element-wise kernels whose operands are contiguous ranges of the same length. Each
// thread takes one pack, also when the ranges start or end inside a pack.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>

#include "kernels/cuda/element.cuh"
#include "kernels/device/tensor.h"

namespace strata::cuda {

/// Elements [0, count), of which pack i of N has those in [i * N - lead, (i + 1) * N - lead).
struct FlatRange {
  std::int64_t count = 0;
  std::int64_t lead = 0;
};

inline constexpr int kFlatThreads = 256;

/// The number of places before the tensor's first element in the aligned pack that holds it.
inline std::int64_t pack_lead(const kernels::Tensor& tensor, int elements) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  const auto element = address / static_cast<std::uintptr_t>(size_of(tensor.dtype()));
  return static_cast<std::int64_t>(element % static_cast<std::uintptr_t>(elements));
}

/// Returns true, and sets range.lead (else to 0), if the same packs are aligned in all operands.
inline bool flat_packs_fit(FlatRange& range, int elements,
                           std::initializer_list<const kernels::Tensor*> operands) {
  range.lead = pack_lead(**operands.begin(), elements);
  const bool fit = std::all_of(operands.begin(), operands.end(), [&](const kernels::Tensor* t) {
    return pack_lead(*t, elements) == range.lead;
  });
  if (!fit) range.lead = 0;
  return fit;
}

inline bool flat_packs_fit(FlatRange& range, int elements, std::span<const kernels::Tensor> inputs,
                           std::span<const kernels::Tensor> outputs) {
  range.lead = pack_lead(inputs[0], elements);
  const auto fits = [&](const kernels::Tensor& t) { return pack_lead(t, elements) == range.lead; };
  const bool fit = std::all_of(inputs.begin(), inputs.end(), fits) &&
                   std::all_of(outputs.begin(), outputs.end(), fits);
  if (!fit) range.lead = 0;
  return fit;
}

/// The launch of one thread per pack.
inline LaunchShape flat_launch(const FlatRange& range, int elements) {
  const std::int64_t packs = (range.lead + range.count + elements - 1) / elements;
  return {{static_cast<std::uint32_t>((packs + kFlatThreads - 1) / kFlatThreads), 1, 1}, 0};
}

/// Calls update.operator()<N>(first) for this thread's pack of N elements, or operator()<1> for
/// each element of a pack that an end of the range cuts.
template <int N, typename Update>
STRATA_DEVICE void for_my_pack(const FlatRange& range, const Update& update) {
  const std::int64_t pack = std::int64_t{block().x} * kFlatThreads + thread();
  const std::int64_t first = pack * N - range.lead;
  if (first >= 0 && first + N <= range.count) {
    update.template operator()<N>(first);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < N; ++i)
    if (first + i >= 0 && first + i < range.count) update.template operator()<1>(first + i);
}

}  // namespace strata::cuda
