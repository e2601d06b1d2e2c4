// The two levels of collectives over hosts. All is enqueued on one stream: what a group of calls
// brings, later groups and sums may read.
#include <algorithm>

#include "comm/nccl/nccl_communicator.h"
#include "comm/workspace.h"
#include "kernels/cuda/ordered_sum.h"

namespace strata::comm {

/// NCCL's own all-gather is a ring through all ranks: a host's pieces come back into it on their
/// way to the rank before their owner, nearly twice the bytes for two hosts.
void NcclCommunicator::gather_over_hosts(const Collective& collective, const std::byte* input,
                                         std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t element = size_of(collective.input_type);
  const auto place = [&](int owner) { return output + partition.begin(owner) * element; };
  const auto bytes = [&](int owner) {
    return static_cast<std::size_t>(partition.count(owner) * element);
  };
  const auto send = [&](const auto& call, int owner, const std::byte* piece, int peer) {
    if (bytes(owner) > 0) call(nccl_.send(piece, bytes(owner), ncclInt8, peer, comm_, stream_));
  };
  const auto receive = [&](const auto& call, int owner, int peer) {
    if (bytes(owner) > 0)
      call(nccl_.receive(place(owner), bytes(owner), ncclInt8, peer, comm_, stream_));
  };
  const int first = levels_.first(), end = first + levels_.locals();
  group([&](const auto& call) {
    for (int peer = first; peer < end; ++peer) {
      if (peer == rank() && input == place(rank())) continue;
      send(call, rank(), input, peer);
      receive(call, peer, peer);
    }
    for (int host = 0; host < levels_.layout.hosts(); ++host)
      if (host != levels_.host) send(call, rank(), input, levels_.layout.counterpart(rank(), host));
    for (const int owner : levels_.served[static_cast<std::size_t>(rank() - first)])
      receive(call, owner, owner);
  });
  group([&](const auto& call) {
    for (int peer = first; peer < end; ++peer) {
      if (peer == rank()) continue;
      for (const int owner : levels_.served[static_cast<std::size_t>(rank() - first)])
        send(call, owner, place(owner), peer);
      for (const int owner : levels_.served[static_cast<std::size_t>(peer - first)])
        receive(call, owner, peer);
    }
  });
}

const std::byte*& NcclCommunicator::contribution(std::size_t index, int peer) {
  return contributions_[index * static_cast<std::size_t>(levels_.locals()) +
                        static_cast<std::size_t>(peer - levels_.first())];
}

std::byte*& NcclCommunicator::made(std::size_t index, std::size_t sum) {
  return made_[index * levels_.sums.size() + sum];
}

void NcclCommunicator::fetch_contributions(const Collective& collective, const std::byte* rounded,
                                           std::span<std::byte>& free) {
  const Partition& partition = collective.partition;
  const std::int64_t element = size_of(collective.wire_type);
  const int first = levels_.first(), end = first + levels_.locals();
  const auto& owners = levels_.adds[static_cast<std::size_t>(rank() - first)];
  group([&](const auto& call) {
    for (int peer = first; peer < end; ++peer) {
      if (peer != rank())
        for (const int owner : levels_.adds[static_cast<std::size_t>(peer - first)])
          if (partition.count(owner) > 0 && levels_.contributes(rank(), peer, owner))
            call(nccl_.send(rounded + partition.begin(owner) * element,
                            static_cast<std::size_t>(partition.count(owner) * element), ncclInt8,
                            peer, comm_, stream_));
      for (std::size_t i = 0; i < owners.size(); ++i) {
        if (!levels_.contributes(peer, rank(), owners[i])) continue;
        contribution(i, peer) = rounded + partition.begin(owners[i]) * element;
        const std::int64_t bytes = partition.count(owners[i]) * element;
        if (peer == rank() || bytes == 0) continue;
        std::byte* incoming = take_piece(free, bytes);
        contribution(i, peer) = incoming;
        call(nccl_.receive(incoming, static_cast<std::size_t>(bytes), ncclInt8, peer, comm_,
                           stream_));
      }
    }
  });
}

void NcclCommunicator::add_for_host(kernels::Stream& stream, const Collective& collective,
                                    std::span<std::byte>& free) {
  const auto& owners = levels_.adds[static_cast<std::size_t>(rank() - levels_.first())];
  for (std::size_t i = 0; i < owners.size(); ++i)
    for (std::size_t s = 0; s < levels_.sums.size(); ++s) {
      const std::int64_t count = collective.partition.count(owners[i]);
      made(i, s) = take_piece(free, count * size_of(DType::f32));
      const Subtree& sum = levels_.sums[s];
      cuda::ordered_sum(stream, {&contribution(i, sum.first), static_cast<std::size_t>(sum.leaves)},
                        collective.wire_type, count, 1.0f, reinterpret_cast<float*>(made(i, s)));
    }
}

void NcclCommunicator::exchange_sums(const Collective& collective, const std::byte* rounded,
                                     std::span<std::byte>& free) {
  const Partition& partition = collective.partition;
  const auto bytes_of = [&](const PartialSum& sum) {
    return static_cast<std::size_t>(partition.count(sum.to) *
                                    size_of(sum_type(sum.subtree, collective.wire_type)));
  };
  const auto& owners = levels_.adds[static_cast<std::size_t>(rank() - levels_.first())];
  const auto index_of = [](const auto& all, const auto& one) {
    return static_cast<std::size_t>(std::ranges::find(all, one) - all.begin());
  };
  group([&](const auto& call) {
    for (const PartialSum& sum : levels_.outgoing) {
      if (bytes_of(sum) == 0) continue;
      const std::byte* from =
          sum.subtree.leaves == 1
              ? rounded + partition.begin(sum.to) * size_of(collective.wire_type)
              : made(index_of(owners, sum.to), index_of(levels_.sums, sum.subtree));
      call(nccl_.send(from, bytes_of(sum), ncclInt8, sum.to, comm_, stream_));
    }
    for (const PartialSum& sum : levels_.incoming) {
      std::byte* incoming = take_piece(free, static_cast<std::int64_t>(bytes_of(sum)));
      operands_[index_of(levels_.parts, sum.subtree)] = incoming;
      if (bytes_of(sum) > 0)
        call(nccl_.receive(incoming, bytes_of(sum), ncclInt8, sum.from, comm_, stream_));
    }
  });
  for (std::size_t part = 0; part < levels_.parts.size(); ++part) {
    const Subtree& subtree = levels_.parts[part];
    if (levels_.layout.host_of(subtree.first) != levels_.host) continue;
    operands_[part] = subtree.leaves == 1 ? contribution(0, subtree.first)
                                          : made(0, index_of(levels_.sums, subtree));
  }
}

void NcclCommunicator::finish_sum(kernels::Stream& stream, const Collective& collective,
                                  float* output, std::span<std::byte> free) {
  const std::int64_t count = collective.partition.count(rank());
  const SumSteps& all = levels_.steps.at(collective.wire_type);
  const std::int64_t stride = padded_piece(count * size_of(DType::f32));
  std::byte* slots = take_piece(free, all.slots * stride);
  const std::size_t parts = levels_.parts.size();
  for (int slot = 0; slot < all.slots; ++slot)
    operands_[parts + static_cast<std::size_t>(slot)] = slots + slot * stride;
  for (const SumStep& step : all.steps) {
    addends_.clear();
    for (const int operand : step.operands)
      addends_.push_back(operands_[static_cast<std::size_t>(operand)]);
    const bool last = step.slot == SumStep::kResult;
    float* sum = last ? output : reinterpret_cast<float*>(slots + step.slot * stride);
    cuda::ordered_sum(stream, addends_, step.type, count, last ? collective.scale : 1.0f, sum);
  }
}

void NcclCommunicator::sum_over_hosts(kernels::Stream& stream, const Collective& collective,
                                      const std::byte* rounded, float* output,
                                      std::span<std::byte> free) {
  fetch_contributions(collective, rounded, free);
  add_for_host(stream, collective, free);
  exchange_sums(collective, rounded, free);
  finish_sum(stream, collective, output, free);
}

}  // namespace strata::comm
