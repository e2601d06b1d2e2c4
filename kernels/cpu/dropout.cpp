#include "kernels/ops/dropout.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/dropout_row.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dropout.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_targets.h"

#include "kernels/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

void dropout_add(const float* x, const float* delta, float* to, std::int64_t n,
                 const RandomSource& source, std::uint64_t position, std::uint32_t threshold,
                 float scale) {
  // Room for a part, the rest of its first block, a last vector of blocks, a vector read over.
  HWY_ALIGN std::uint32_t words[kRowPartElements + 4 + 4 * kBlock + kBlock];
  const auto skipped = static_cast<std::int64_t>(position % 4);
  philox_row(source, position / 4, (skipped + n + 3) / 4, words);
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const auto random = hn::LoadU(U(), words + skipped + lanes.i);
    const V kept = keep_lanes(random, threshold, hn::Mul(lanes.load(delta), all(scale)));
    lanes.store(x == nullptr ? kept : hn::Add(lanes.load(x), kept), to);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(dropout_add);

DropoutRows::DropoutRows(const Tensor& rng, const Attributes& attributes, std::int64_t columns)
    : rng_(rng.row<std::int64_t>()),
      columns_(columns),
      sequence_(attributes.integer("sequence")),
      key_(attributes.integer("key")),
      threshold_(dropout_threshold(attributes.real("p"))),
      scale_(dropout_scale(attributes.real("p"))) {}

void DropoutRows::apply(const float* x, const float* delta, float* to, std::int64_t row,
                        std::int64_t column, std::int64_t n) const {
  STRATA_CHECK(n <= kRowPartElements);
  const RandomSource source = random_source(rng_, row, sequence_, key_);
  const auto position = static_cast<std::uint64_t>(row % sequence_ * columns_ + column);
  HWY_DYNAMIC_DISPATCH(dropout_add)(x, delta, to, n, source, position, threshold_, scale_);
}

void dropout_kernel(Stream& stream, const KernelCall& call) {
  const DropoutRows dropout(call.inputs[1], call.attributes, call.inputs[0].cols());
  const auto body = [&](const float* const* in, float* const* out, const RowPart& part) {
    dropout.apply(nullptr, in[0], out[0], part.row, part.column, part.count);
  };
  for_each_row_part(cpu(stream).pool(), {call.inputs[0]}, {call.outputs[0]}, body);
}

void residual_add_kernel(Stream& stream, const KernelCall& call) {
  if (call.attributes.real("p", 0) == 0) {
    add_kernel(stream, {call.inputs.first(2), call.outputs, call.workspace, call.attributes});
    return;
  }
  const DropoutRows dropout(call.inputs[2], call.attributes, call.inputs[0].cols());
  const auto body = [&](const float* const* in, float* const* out, const RowPart& part) {
    dropout.apply(in[0], in[1], out[0], part.row, part.column, part.count);
  };
  for_each_row_part(cpu(stream).pool(), {call.inputs[0], call.inputs[1]}, {call.outputs[0]}, body);
}

}  // namespace strata::kernels
#endif
