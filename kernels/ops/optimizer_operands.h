// The operands of optimizers and the formats in which state may be kept, checked in one place.
//
// A call has the state, then the gradient [n] (fp32, bf16 or fp16), control u8
// [sizeof(StepControl)], and rng i64 [2 or more] (seed, step) when a moment is bf16. The state is
//
//   master f32 [n]                       or, packed,
//   parameter bf16 [n], remainder i16 [n]
//   the moments [n], all fp32 or all bf16
//
// and comes out in place, in the same order. With a master and the attribute parameter_dtype (fp32,
// bf16 or fp16), one more output is the parameter [n]: the new master, rounded (bf16: half away
// from zero, fp16: to nearest even).
//
// The bits of a packed master are parameter * 2^16 + remainder: 4 bytes that include the model's
// own bf16 parameter. This is exact: because the parameter is the master rounded half away from
// zero, the remainder is the master's low 16 bits, as a signed number. Packed or not, masters and
// parameters are equal bit for bit (except the lower half of a NaN).
//
// bf16 moments are rounded stochastically by their place in the unit, first + i
// (kernels/math/stochastic_rounding.h). Attribute key is that of the unit that the range is a part
// of; first (default 0) says where in the unit's flat space it starts. The step uses a new moment
// before it is rounded.
#pragma once

#include <span>

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Checks operands, returns output types. `moments` are the moments' names. Throws InvalidArgument.
Types optimizer_outputs(std::string_view operation, TypeSpan inputs, const Attributes& attributes,
                        bool packed, std::span<const std::string_view> moments);

/// Throws InvalidArgument unless operand `i` is i64 of at least two elements, seed and step.
void check_stochastic_source(std::string_view operation, TypeSpan inputs, std::size_t i);

}  // namespace strata::kernels
