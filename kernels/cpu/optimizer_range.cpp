#include "kernels/cpu/optimizer_range.h"

namespace strata::kernels {

OptimizerRange OptimizerRange::of(const KernelCall& call, MasterFormat format,
                                  std::size_t moments) {
  const auto &in = call.inputs, &out = call.outputs;
  OptimizerRange range;
  range.format = format;
  range.master_in = in[0].data;
  range.master = out[0].data;
  for (std::size_t i = 0; i < moments; ++i) {
    range.moment_dtype = in[1 + i].dtype();
    range.moment_in[i] = in[1 + i].data;
    range.moment[i] = out[1 + i].data;
  }
  const Tensor& gradient = in[1 + moments];
  range.gradient = gradient.data;
  range.gradient_dtype = gradient.dtype();
  if (const std::size_t index = 1 + moments; index < out.size()) {
    range.parameter = out[index].data;
    range.parameter_dtype = out[index].dtype();
  }
  if (const std::size_t index = 3 + moments; index < in.size()) {
    const auto* rng = in[index].row<const std::int64_t>();
    range.source = {rng[0], rng[1], kStochasticSample, call.attributes.integer("key")};
    range.position = static_cast<std::uint64_t>(call.attributes.integer("first", 0));
  }
  range.count = in[0].elements();
  return range;
}

OptimizerRange OptimizerRange::part(std::int64_t begin, std::int64_t end) const {
  const std::int64_t master_bytes = format == MasterFormat::f32 ? 4 : 2;
  OptimizerRange part = *this;
  part.master_in += begin * master_bytes;
  part.master += begin * master_bytes;
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
