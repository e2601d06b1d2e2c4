// The collectives of ranks of one host, or one on each.
#include "comm/nccl/nccl_communicator.h"
#include "comm/workspace.h"
#include "kernels/cuda/ordered_sum.h"

namespace strata::comm {
namespace {

bool even(const Partition& partition) {
  for (int rank = 1; rank < partition.ranks(); ++rank)
    if (partition.count(rank) != partition.count(0)) return false;
  return true;
}

}  // namespace

void NcclCommunicator::all_gather(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  if (levels_.needed()) return gather_over_hosts(collective, input, output);
  const Partition& partition = collective.partition;
  const std::int64_t element = size_of(collective.input_type);
  const auto bytes = [&](int owner) {
    return static_cast<std::size_t>(partition.count(owner) * element);
  };
  group([&](const auto& call) {
    if (even(partition)) {
      if (bytes(0) > 0) call(nccl_.all_gather(input, output, bytes(0), ncclInt8, comm_, stream_));
      return;
    }
    for (int owner = 0; owner < size(); ++owner) {
      std::byte* piece = output + partition.begin(owner) * element;
      if (bytes(owner) > 0)
        call(nccl_.broadcast(owner == rank() ? input : piece, piece, bytes(owner), ncclInt8, owner,
                             comm_, stream_));
    }
  });
}

void NcclCommunicator::reduce_scatter(kernels::Stream& stream, const Collective& collective,
                                      const std::byte* input, float* output,
                                      std::span<std::byte> free) {
  const Partition& partition = collective.partition;
  const DType wire = collective.wire_type;
  const std::byte* rounded = input;
  if (collective.input_type != wire) {
    std::byte* all = take_piece(free, partition.total() * size_of(wire));
    cuda::convert_to_wire(stream, collective.input_type, input, wire, partition.total(), all);
    rounded = all;
  }
  if (device_.reduction == Reduction::native) {
    const std::int64_t mine = partition.count(rank());
    std::byte* sum = take_piece(free, mine * size_of(wire));
    native_sums(partition, wire, rounded, sum);
    const std::byte* addend = sum;
    return cuda::ordered_sum(stream, {&addend, 1}, wire, mine, collective.scale, output);
  }
  if (levels_.needed()) return sum_over_hosts(stream, collective, rounded, output, free);
  ordered_sums(stream, collective, rounded, output, free);
}

void NcclCommunicator::ordered_sums(kernels::Stream& stream, const Collective& collective,
                                    const std::byte* rounded, float* output,
                                    std::span<std::byte> free) {
  const Partition& partition = collective.partition;
  const std::int64_t element = size_of(collective.wire_type);
  const std::int64_t mine = partition.count(rank());
  group([&](const auto& call) {
    for (int peer = 0; peer < size(); ++peer) {
      const std::byte* outgoing = rounded + partition.begin(peer) * element;
      const std::byte*& contribution = contributions_[static_cast<std::size_t>(peer)];
      contribution = outgoing;
      if (peer == rank()) continue;
      if (partition.count(peer) > 0)
        call(nccl_.send(outgoing, static_cast<std::size_t>(partition.count(peer) * element),
                        ncclInt8, peer, comm_, stream_));
      std::byte* incoming = take_piece(free, mine * element);
      contribution = incoming;
      if (mine > 0)
        call(nccl_.receive(incoming, static_cast<std::size_t>(mine * element), ncclInt8, peer,
                           comm_, stream_));
    }
  });
  cuda::ordered_sum(stream, {contributions_.data(), static_cast<std::size_t>(size())},
                    collective.wire_type, mine, collective.scale, output);
}

void NcclCommunicator::native_sums(const Partition& partition, DType wire, const std::byte* rounded,
                                   std::byte* sum) {
  const ncclDataType_t type = wire == DType::bf16  ? ncclBfloat16
                              : wire == DType::f16 ? ncclFloat16
                                                   : ncclFloat32;
  group([&](const auto& call) {
    for (int owner = 0; owner < size(); ++owner)
      if (partition.count(owner) > 0)
        call(nccl_.reduce(rounded + partition.begin(owner) * size_of(wire),
                          owner == rank() ? sum : nullptr,
                          static_cast<std::size_t>(partition.count(owner)), type, ncclSum, owner,
                          comm_, stream_));
  });
}

void NcclCommunicator::all_to_all(const Collective& collective, const std::byte* input,
                                  std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t element = size_of(collective.input_type);
  const std::int64_t mine = partition.count(rank()) * element;
  group([&](const auto& call) {
    // Each rank's own piece goes through NCCL, too.
    for (int peer = 0; peer < size(); ++peer) {
      if (partition.count(peer) > 0)
        call(nccl_.send(input + partition.begin(peer) * element,
                        static_cast<std::size_t>(partition.count(peer) * element), ncclInt8, peer,
                        comm_, stream_));
      if (mine > 0)
        call(nccl_.receive(output + peer * mine, static_cast<std::size_t>(mine), ncclInt8, peer,
                           comm_, stream_));
    }
  });
}

void NcclCommunicator::enqueue(kernels::Stream& stream, const Collective& collective,
                               const std::byte* input, std::byte* output,
                               std::span<std::byte> workspace) {
  const std::int64_t elements =
      collective.kind == CollectiveKind::barrier ? 1 : collective.partition.total();
  const auto bytes = static_cast<std::size_t>(elements * size_of(collective.input_type));
  if (elements == 0) return;
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      return all_gather(collective, input, output);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(stream, collective, input, reinterpret_cast<float*>(output), workspace);
    case CollectiveKind::all_to_all:
      return all_to_all(collective, input, output);
    case CollectiveKind::all_reduce:  // unsigned, so that the sum wraps
      return group([&](const auto& call) {
        call(nccl_.all_reduce(output, output, static_cast<std::size_t>(elements), ncclUint64,
                              ncclSum, comm_, stream_));
      });
    case CollectiveKind::broadcast:
      return group([&](const auto& call) {
        call(nccl_.broadcast(output, output, bytes, ncclInt8, 0, comm_, stream_));
      });
    case CollectiveKind::send:
      return group([&](const auto& call) {
        call(nccl_.send(input, bytes, ncclInt8, collective.peer, comm_, stream_));
      });
    case CollectiveKind::receive:
      return group([&](const auto& call) {
        call(nccl_.receive(output, bytes, ncclInt8, collective.peer, comm_, stream_));
      });
    case CollectiveKind::barrier:
      return group([&](const auto& call) {
        call(nccl_.all_reduce(device_.word, device_.word, 1, ncclUint64, ncclSum, comm_, stream_));
      });
  }
}

}  // namespace strata::comm
