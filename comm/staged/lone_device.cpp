#include "comm/staged/lone_device.h"

#include "core/check.h"
#include "kernels/device/tensor.h"

namespace strata::comm {
namespace {

bool rounds(const Collective& c) {
  return c.kind == CollectiveKind::reduce_scatter && c.wire_type != DType::f32 &&
         c.wire_type != c.input_type;
}

}  // namespace

LoneDeviceCommunicator::LoneDeviceCommunicator(kernels::Device& device)
    : device_(device), convert_(device.kernels().find("convert")) {
  STRATA_CHECK(convert_ != nullptr, "the device cannot convert");
}

void LoneDeviceCommunicator::execute(kernels::Stream& stream, const Collective& collective,
                                     const std::byte* input, std::byte* output,
                                     std::span<std::byte> workspace) {
  validate(collective, 0, 1);
  const OperandBytes bytes = arenas_.check_operands(collective, 0, input, output);
  if (bytes.output == 0) return;
  const bool sums = collective.kind == CollectiveKind::reduce_scatter;
  if (sums)
    STRATA_CHECK(collective.scale == 1.0f, "a mean over one rank has scale", collective.scale);
  if (!sums || (collective.input_type == DType::f32 && !rounds(collective))) {
    if (output != input) device_.copy(stream, output, input, bytes.output);
    return;
  }
  const std::int64_t elements = collective.partition.total();
  if (rounds(collective)) {
    STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= workspace_bytes(collective));
    convert(stream, collective.input_type, input, collective.wire_type, workspace.data(), elements);
    input = workspace.data();
  }
  convert(stream, rounds(collective) ? collective.wire_type : collective.input_type, input,
          DType::f32, output, elements);
}

void LoneDeviceCommunicator::convert(kernels::Stream& stream, DType from_type,
                                     const std::byte* from, DType to_type, std::byte* to,
                                     std::int64_t elements) const {
  const kernels::Shape shape{elements};
  // const_cast, since a kernel does not write its inputs, but their type is not const.
  const kernels::Tensor input{{from_type, shape}, const_cast<std::byte*>(from)};
  const kernels::Tensor output{{to_type, shape}, to};
  const kernels::Attributes none;
  convert_(stream, {{&input, 1}, {&output, 1}, {}, none});
}

}  // namespace strata::comm
