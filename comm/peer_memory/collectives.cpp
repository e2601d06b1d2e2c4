// Each rank reads what it needs from its peers' operands between two barriers.
#include <cstring>
#include <functional>

#include "comm/copy_bytes.h"
#include "comm/first_cause.h"
#include "comm/peer_memory/peer_communicator.h"
#include "core/check.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {

void PeerCommunicator::execute(kernels::Stream& /*stream*/, const Collective& collective,
                               const std::byte* input, std::byte* output,
                               std::span<std::byte> workspace) {
  const auto step = [&] {
    validate(collective, rank_, world_);
    static_cast<void>(group_.arenas().locate(output, operand_bytes(collective, rank_).output,
                                             group_.what(), "output"));
    run_kind(collective, input, output, workspace);
  };
  char what[kDescriptionBytes];
  group_.begin(describe_into(collective, what), std::cref(step));
}

void PeerCommunicator::all_gather(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const auto operands = group_.exchange(collective, input, partition.count(rank_) * size);
  // Each rank starts with itself, so that readers spread over the memories.
  for (int step = 0; step < world_; ++step) {
    const int peer = (rank_ + step) % world_;
    copy_bytes(output + partition.begin(peer) * size, operands[peer], partition.count(peer) * size);
  }
  group_.barrier();
}

void PeerCommunicator::reduce_scatter(const Collective& collective, const std::byte* input,
                                      float* output, std::span<std::byte> /*workspace*/) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const auto operands = group_.exchange(collective, input, partition.total() * size);
  const std::int64_t count = partition.count(rank_);
  if (count > 0) {
    for (const std::byte*& operand : operands) operand += partition.begin(rank_) * size;
    kernels::ordered_sum(nullptr, operands, collective.input_type, collective.wire_type, count,
                         collective.scale, output);
  }
  group_.barrier();
}

void PeerCommunicator::all_reduce(const Collective& collective, std::byte* data,
                                  std::span<std::byte> workspace) {
  const std::int64_t count = collective.partition.total();
  const std::int64_t bytes = count * size_of(DType::i64);
  STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= bytes, group_.what(), "workspace of",
               workspace.size(), "bytes; needs", bytes);
  const auto operands = group_.exchange(collective, data, bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t sum = 0;  // unsigned, so that the sum wraps
    for (const std::byte* operand : operands) {
      std::uint64_t value;
      std::memcpy(&value, operand + i * 8, 8);
      sum += value;
    }
    std::memcpy(workspace.data() + i * 8, &sum, 8);
  }
  group_.barrier();  // all ranks have read: operands may change
  copy_bytes(data, workspace.data(), bytes);
}

void PeerCommunicator::broadcast(const Collective& collective, std::byte* data) {
  const std::int64_t bytes = collective.partition.total() * size_of(collective.input_type);
  const auto operands = group_.exchange(collective, data, bytes);
  if (rank_ != 0) copy_bytes(data, operands[0], bytes);
  group_.barrier();
}

void PeerCommunicator::all_to_all(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t piece = partition.count(rank_) * size;
  const auto operands = group_.exchange(collective, input, partition.total() * size);
  for (int step = 0; step < world_ && piece > 0; ++step) {
    const int peer = (rank_ + step) % world_;
    copy_bytes(output + peer * piece, operands[peer] + partition.begin(rank_) * size, piece);
  }
  group_.barrier();
}

void PeerCommunicator::send(const Collective& collective, const std::byte* input) {
  group_.send(collective, collective.peer, input, operand_bytes(collective, rank_).input);
}

void PeerCommunicator::receive(const Collective& collective, std::byte* output) {
  group_.receive(collective, collective.peer, output, operand_bytes(collective, rank_).output);
}

void PeerCommunicator::meet(const Collective& collective) {
  group_.exchange(collective, nullptr, 0);
}

void PeerCommunicator::abort(const std::string& reason, ExitCode /*code*/) noexcept {
  group_.abort(attributed(rank_, reason));
}

void PeerCommunicator::close() {
  if (group_.closed() || group_.aborted()) return;
  group_.begin("close", [this] { group_.barrier(); });
  group_.close();
}

}  // namespace strata::comm
