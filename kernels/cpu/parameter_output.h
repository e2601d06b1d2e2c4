// The optional last output of an optimizer kernel: the new master, rounded to the parameter's type.
#pragma once

#include "kernels/cpu/convert.h"
#include "kernels/stream.h"

namespace strata::kernels {

/// Elements that an optimizer updates before it rounds them: still in the cache (16 KiB), so that
/// rounding costs its write and nothing else.
inline constexpr std::int64_t kOptimizerPiece = 4096;

/// Where a kernel writes rounded parameters; data is nullptr without such an output.
struct ParameterOutput {
  DType dtype = DType::f32;
  std::byte* data = nullptr;

  /// Rounds master[0, count) into elements [begin, begin + count).
  void write(const float* master, std::int64_t begin, std::int64_t count) const {
    if (data == nullptr) return;
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(master), dtype,
                  data + begin * size_of(dtype), count, Rounding::master);
  }
};

/// Output `index` of the call, if there is one.
inline ParameterOutput parameter_output(const KernelCall& call, std::size_t index) {
  if (index >= call.outputs.size()) return {};
  return {call.outputs[index].dtype(), call.outputs[index].data};
}

}  // namespace strata::kernels
