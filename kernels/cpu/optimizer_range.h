// The operands of a call of an optimizer on the CPU, in whatever formats they are kept, and their
// cuts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/math/philox.h"
#include "kernels/math/stochastic_rounding.h"
#include "kernels/ops/step_state.h"

namespace strata::kernels {

/// Elements per task: long enough for memory to stream, with enough tasks in a tile of 4 Mi
/// elements.
inline constexpr std::int64_t kOptimizerTask = 128 * 1024;

/// The format of the master or parameter that a kernel updates.
enum class UpdatedFormat : std::uint8_t {
  f32,             ///< an fp32 master; a parameter may be written beside it
  packed,          ///< the bf16 parameter and the remainder of the master
  stochastic_bf16  ///< the parameter alone
};

/// A range of the operands of one call; its moments all have one type.
struct OptimizerRange {
  UpdatedFormat format = UpdatedFormat::f32;
  DType moment_dtype = DType::f32, gradient_dtype = DType::f32, parameter_dtype = DType::f32;
  const std::byte* master_in = nullptr;  ///< or the parameter where there is no master copy
  std::byte* master = nullptr;
  const std::byte* remainder_in = nullptr;  ///< of packed masters
  std::byte* remainder = nullptr;
  std::array<const std::byte*, 2> moment_in{};
  std::array<std::byte*, 2> moment{};
  const std::byte* gradient = nullptr;
  std::byte* parameter = nullptr;  ///< nullptr: not an output of this call
  RandomSource source;             ///< for moments and parameters that are rounded stochastically
  std::uint64_t position = 0;      ///< of the first element, in its unit
  std::int64_t count = 0;

  /// Returns the whole operands of a call. Their order is: master (packed: parameter, remainder),
  /// as many moments as `moments`, gradient, control, rng (if a format is stochastic).
  static OptimizerRange of(const KernelCall& call, UpdatedFormat format, std::size_t moments);
  /// Returns elements [begin, end).
  [[nodiscard]] OptimizerRange part(std::int64_t begin, std::int64_t end) const;
};

/// Returns the control operand of a call whose operands have the order of OptimizerRange::of.
inline StepControl control_of(const KernelCall& call, UpdatedFormat format, std::size_t moments) {
  StepControl control;
  const std::size_t states = moments + (format == UpdatedFormat::packed ? 2 : 1);
  std::memcpy(&control, call.inputs[states + 1].data, sizeof control);
  return control;
}

/// Calls body(part) for parts that cover the range, as tasks on the threads of the stream.
template <typename Body>
void for_each_part(Stream& stream, const OptimizerRange& range, const Body& body) {
  for_each_range(&cpu(stream).pool(), range.count, kOptimizerTask,
                 [&](std::int64_t begin, std::int64_t end) { body(range.part(begin, end)); });
}

}  // namespace strata::kernels
