#include "kernels/cpu/optimizer_range.h"

namespace strata::kernels {

OptimizerRange OptimizerRange::of(const KernelCall& call, UpdatedFormat format,
                                  std::size_t moments) {
  const auto &in = call.inputs, &out = call.outputs;
  const std::size_t first_moment = format == UpdatedFormat::packed ? 2 : 1;
  const std::size_t states = first_moment + moments;
  OptimizerRange range;
  range.format = format;
  range.master_in = in[0].data;
  range.master = out[0].data;
  if (format == UpdatedFormat::packed) {
    range.remainder_in = in[1].data;
    range.remainder = out[1].data;
  }
  for (std::size_t i = 0; i < moments; ++i) {
    range.moment_dtype = in[first_moment + i].dtype();
    range.moment_in[i] = in[first_moment + i].data;
    range.moment[i] = out[first_moment + i].data;
  }
  range.gradient = in[states].data;
  range.gradient_dtype = in[states].dtype();
  if (states < out.size()) {
    range.parameter = out[states].data;
    range.parameter_dtype = out[states].dtype();
  }
  if (states + 2 < in.size()) {
    const auto* rng = in[states + 2].row<const std::int64_t>();
    range.source = {rng[0], rng[1], kStochasticSample, call.attributes.integer("key")};
    range.position = static_cast<std::uint64_t>(call.attributes.integer("first", 0));
  }
  range.count = in[0].elements();
  return range;
}

OptimizerRange OptimizerRange::part(std::int64_t begin, std::int64_t end) const {
  const std::int64_t master_bytes = format == UpdatedFormat::f32 ? 4 : 2;
  OptimizerRange part = *this;
  part.master_in += begin * master_bytes;
  part.master += begin * master_bytes;
  if (format == UpdatedFormat::packed) {
    part.remainder_in += begin * 2;
    part.remainder += begin * 2;
  }
  for (std::size_t i = 0; i < moment.size() && moment[i] != nullptr; ++i) {
    part.moment_in[i] += begin * size_of(moment_dtype);
    part.moment[i] += begin * size_of(moment_dtype);
  }
  part.gradient += begin * size_of(gradient_dtype);
  if (parameter != nullptr) part.parameter += begin * size_of(parameter_dtype);
  part.position += static_cast<std::uint64_t>(begin);
  part.count = end - begin;
  return part;
}

}  // namespace strata::kernels
