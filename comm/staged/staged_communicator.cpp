#include "comm/staged/staged_communicator.h"

#include <algorithm>

#include "comm/host_stream.h"

namespace strata::comm {
namespace {

/// Returns the bytes of the largest operand of `collective` on any rank, the same number on all.
std::int64_t largest_operand(const Collective& collective) {
  std::int64_t largest = 0;
  for (int rank = 0; rank < collective.partition.ranks(); ++rank) {
    const OperandBytes bytes = operand_bytes(collective, rank);
    largest = std::max({largest, bytes.input, bytes.output});
  }
  return (largest + 4095) / 4096 * 4096;
}

}  // namespace

StagedCommunicator::StagedCommunicator(Communicator& host, kernels::Device& device)
    : host_(host), device_(device) {}

void StagedCommunicator::make_room(const Collective& collective) {
  const std::int64_t half = largest_operand(collective);
  if (2 * half <= static_cast<std::int64_t>(staging_.memory().size())) return;
  if (!staging_.memory().empty()) host_.unregister_arena(staging_.memory().data());
  const auto bytes = static_cast<std::size_t>(2 * half);
  staging_file_ = make_memfd("strata-staging", bytes);
  staging_ = MappedFile(staging_file_.get(), bytes, Access::read_write, "staging of collectives");
  host_.register_arena({staging_.memory().data(), 2 * half, staging_file_.get()});
}

void StagedCommunicator::execute(kernels::Stream& stream, const Collective& collective,
                                 const std::byte* input, std::byte* output,
                                 std::span<std::byte> /*workspace*/) {
  validate(collective, rank(), size());
  const OperandBytes bytes = arenas_.check_operands(collective, rank(), input, output);
  make_room(collective);
  // An operand that is input and output stays one.
  const bool in_place =
      bytes.input > 0 && bytes.output > 0 && input == output && bytes.input == bytes.output;
  const std::span<std::byte> memory = staging_.memory();
  std::byte* staged_input = bytes.input == 0 ? nullptr : memory.data();
  std::byte* staged_output =
      bytes.output == 0 ? nullptr : memory.data() + (in_place ? 0 : memory.size() / 2);
  device_.synchronize(stream);
  if (bytes.input > 0) device_.copy_now(staged_input, input, bytes.input);
  HostStream host_stream;
  workspace_.resize(
      std::max(workspace_.size(), static_cast<std::size_t>(host_.workspace_bytes(collective))));
  host_.run(host_stream, collective, staged_input, staged_output, workspace_);
  if (bytes.output > 0) device_.copy_now(output, staged_output, bytes.output);
}

void StagedCommunicator::close() {
  if (staging_.memory().empty()) return;
  host_.unregister_arena(staging_.memory().data());
  staging_ = {};
}

}  // namespace strata::comm
