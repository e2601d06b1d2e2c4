// AdamW and Adam with moments of 8 bits in blocks (Dettmers et al., "8-bit Optimizers via
// Block-wise Quantization", arXiv 2110.02861), on one flat range: 6 1/16 bytes of state per
// element.
//
// LOSSY: moments are rounded to one of 256 numbers in each step, deterministically. Runs differ
// from those of adamw but are as reproducible: the same bits on every backend and instruction set.
//
// inputs   master f32 [n], m u8 [n], v u8 [n], m_scale f32 [n/128], v_scale f32 [n/128],
//          gradient [n] (fp32, bf16 or fp16), control u8 [sizeof(StepControl)]
// attributes  beta1, beta2, eps, weight_decay, decoupled, parameter_dtype? as in adamw.h
// outputs  master, m, v, m_scale, v_scale (each in place), parameter [n]?: the new master, rounded
//          as in adamw.h
//
// A block is 128 elements, and n is a multiple of that. Segments of a unit start at multiples of
// 128 elements, shards and tiles at multiples of 1,024, so that no block straddles the border of a
// shard or a change of optimizer settings: results depend neither on ranks nor on tiles. (The paper
// has blocks of 2,048; smaller ones have smaller errors and cost 0.06 bytes per element.)
//
//   m = signed_value(code of m) * m_scale, v = unsigned_value(code of v) * v_scale
//   the arithmetic of adamw.h: it sees the new moments before they are rounded
//   m_scale = largest |m| of the block, v_scale = largest v
//   code of m = signed_code(m / m_scale), code of v = unsigned_code(v / v_scale): the nearest of
//   the paper's dynamic numbers (kernels/math/dynamic_map.h). A block of zeros has scale 0.
//
// v itself is quantized, not its root, as in the paper. Unlike there, a v that is not zero does not
// become zero, however small it is in its block, because m would then be divided by eps alone.
// State that is all zero bytes is the state before the first step. A block with a number that is
// not finite becomes NaN as a whole. Steps run it under the predicate control.apply.
#pragma once

#include <cstdint>

#include "kernels/ops/operation.h"

namespace strata::kernels {

inline constexpr std::int64_t kQuantizedBlock = 128;

const Operation& adamw_8bit_operation();

}  // namespace strata::kernels
