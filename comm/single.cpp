#include "comm/single.h"

#include <cstring>

#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {

void SingleCommunicator::require_alive() {
  const std::lock_guard lock(mutex_);
  if (abort_reason_) throw PeerError(*abort_reason_);
}

void SingleCommunicator::register_arena(const ArenaRegion& region) {
  require_alive();
  arenas_.add(region);
}

void SingleCommunicator::unregister_arena(const std::byte* base) { arenas_.remove(base); }

void SingleCommunicator::execute(kernels::Stream& /*stream*/, const Collective& collective,
                                 const std::byte* input, std::byte* output,
                                 std::span<std::byte> /*workspace*/) {
  require_alive();
  validate(collective, 0, 1);
  const OperandBytes bytes = arenas_.check_operands(collective, 0, input, output);
  if (bytes.output == 0) return;
  if (collective.kind == CollectiveKind::reduce_scatter) {
    kernels::ordered_sum(nullptr, {&input, 1}, collective.input_type, collective.wire_type,
                         collective.partition.total(), collective.scale,
                         reinterpret_cast<float*>(output));
  } else if (output != input) {
    std::memcpy(output, input, static_cast<std::size_t>(bytes.output));
  }
}

void SingleCommunicator::abort(const std::string& reason, ExitCode /*code*/) noexcept {
  const std::lock_guard lock(mutex_);
  if (!abort_reason_) abort_reason_ = reason;
}

void SingleCommunicator::close() {}

}  // namespace strata::comm
