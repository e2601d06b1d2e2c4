// Each rank reads what it needs from its peers' operands between two barriers.
#include <fmt/core.h>
#include <cstring>
#include <functional>

#include "comm/copy_bytes.h"
#include "comm/peer_memory/peer_communicator.h"
#include "core/check.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {

void PeerCommunicator::execute(kernels::Stream& /*stream*/, const Collective& collective,
                               const std::byte* input, std::byte* output,
                               std::span<std::byte> workspace) {
  const auto step = [&] {
    validate(collective, rank_, world_);
    static_cast<void>(
        arenas_.locate(output, operand_bytes(collective, rank_).output, what_, "output"));
    run_kind(collective, input, output, workspace);
  };
  char what[sizeof(Publication::text)];
  begin(describe_into(collective, what), std::cref(step));
}

void PeerCommunicator::all_gather(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const auto operands = exchange(collective, input, partition.count(rank_) * size);
  // Each rank starts with itself, so that readers spread over the memories.
  for (int step = 0; step < world_; ++step) {
    const int peer = (rank_ + step) % world_;
    copy_bytes(output + partition.begin(peer) * size, operands[peer], partition.count(peer) * size);
  }
  barrier();
}

void PeerCommunicator::reduce_scatter(const Collective& collective, const std::byte* input,
                                      float* output, std::span<std::byte> /*workspace*/) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const auto operands = exchange(collective, input, partition.total() * size);
  const std::int64_t count = partition.count(rank_);
  if (count > 0) {
    for (const std::byte*& operand : operands) operand += partition.begin(rank_) * size;
    kernels::ordered_sum(nullptr, operands, collective.input_type, collective.wire_type, count,
                         collective.scale, output);
  }
  barrier();
}

void PeerCommunicator::all_reduce(const Collective& collective, std::byte* data,
                                  std::span<std::byte> workspace) {
  const std::int64_t count = collective.partition.total();
  const std::int64_t bytes = count * size_of(DType::i64);
  STRATA_CHECK(static_cast<std::int64_t>(workspace.size()) >= bytes, what_, "workspace of",
               workspace.size(), "bytes; needs", bytes);
  const auto operands = exchange(collective, data, bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t sum = 0;  // unsigned, so that the sum wraps
    for (const std::byte* operand : operands) {
      std::uint64_t value;
      std::memcpy(&value, operand + i * 8, 8);
      sum += value;
    }
    std::memcpy(workspace.data() + i * 8, &sum, 8);
  }
  barrier();  // all ranks have read: operands may change
  copy_bytes(data, workspace.data(), bytes);
}

void PeerCommunicator::broadcast(const Collective& collective, std::byte* data) {
  const std::int64_t bytes = collective.partition.total() * size_of(collective.input_type);
  const auto operands = exchange(collective, data, bytes);
  if (rank_ != 0) copy_bytes(data, operands[0], bytes);
  barrier();
}

void PeerCommunicator::all_to_all(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t piece = partition.count(rank_) * size;
  const auto operands = exchange(collective, input, partition.total() * size);
  for (int step = 0; step < world_ && piece > 0; ++step) {
    const int peer = (rank_ + step) % world_;
    copy_bytes(output + peer * piece, operands[peer] + partition.begin(rank_) * size, piece);
  }
  barrier();
}

void PeerCommunicator::send(const Collective& collective, const std::byte* input) {
  const std::int64_t bytes = collective.partition.total() * size_of(collective.input_type);
  Mailbox& mailbox = board_.mailbox(rank_, collective.peer);
  const std::uint32_t seen = mailbox.taken.count();
  mailbox.publication = publication_of(collective, input, bytes, "input");
  mailbox.posted.advance();
  wait(mailbox.taken, seen, collective.peer, collective.peer + 1);
}

void PeerCommunicator::receive(const Collective& collective, std::byte* output) {
  const std::int64_t bytes = collective.partition.total() * size_of(collective.input_type);
  Mailbox& mailbox = board_.mailbox(collective.peer, rank_);
  // The sender waits until each message is taken, so it is at most one ahead.
  const std::uint32_t taken = mailbox.taken.count();
  wait(mailbox.posted, taken, collective.peer, collective.peer + 1);
  begin_reading();
  const Publication& theirs = mailbox.publication;
  if (theirs.fingerprint != fingerprint(collective))
    throw InternalError(
        fmt::format("collective {} differs between ranks: rank {} runs '{}', rank {} runs '{}'",
                    begun(), collective.peer, theirs.text, rank_, what_));
  copy_bytes(output, peer_operand(theirs, collective.peer), bytes);
  board_.end_reading(rank_);
  mailbox.taken.advance();
}

void PeerCommunicator::meet(const Collective& collective) { exchange(collective, nullptr, 0); }

}  // namespace strata::comm
