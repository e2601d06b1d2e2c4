// Pieces travel point to point instead of through MPI_Alltoallv and MPI_Allgatherv, which do the
// same among few ranks: no displacement has to fit an int, and no rank sends to itself.
#include <algorithm>
#include <cstring>

#include "comm/copy_bytes.h"
#include "comm/mpi/mpi_calls.h"
#include "comm/mpi/mpi_communicator.h"
#include "kernels/cpu/ordered_sum.h"

namespace strata::comm {
namespace {

// Largest message, since MPI's counts are int. Messages of one pair and tag stay in order, so parts
// need no numbers. Small enough that ordinary tests send several; large enough to cost nothing.
constexpr std::size_t kPartBytes = std::size_t{1} << 24;
constexpr int kTag = 1;

std::span<std::byte> bytes_at(const std::byte* base, std::int64_t offset, std::int64_t bytes) {
  if (bytes == 0) return {};
  // const_cast, since MPI_Isend takes const void*, and one type of piece serves both directions.
  return {const_cast<std::byte*>(base) + offset, static_cast<std::size_t>(bytes)};
}

}  // namespace

template <typename Call>
void MpiCommunicator::begin(const char* name, std::span<std::byte> piece, const Call& call) {
  for (std::size_t first = 0; first < piece.size(); first += kPartBytes) {
    const auto bytes = static_cast<int>(std::min(kPartBytes, piece.size() - first));
    requests_.begin(
        name, [&](MPI_Request* request) { return call(piece.data() + first, bytes, request); });
  }
}

template <typename Call>
void MpiCommunicator::run_whole(const char* name, const Collective& collective,
                                const std::byte* operand, const Call& call) {
  begin(name, bytes_at(operand, 0, collective.partition.total() * size_of(collective.input_type)),
        call);
  requests_.finish(watch());
}

template <typename Outgoing, typename Incoming>
void MpiCommunicator::exchange(const Outgoing& outgoing, const Incoming& incoming) {
  for (int step = 1; step < world_; ++step) {
    const int source = (rank_ + world_ - step) % world_;
    begin("MPI_Irecv", incoming(source), [&](std::byte* data, int bytes, MPI_Request* request) {
      return MPI_Irecv(data, bytes, MPI_BYTE, source, kTag, comm_, request);
    });
  }
  for (int step = 1; step < world_; ++step) {
    const int target = (rank_ + step) % world_;
    begin("MPI_Isend", outgoing(target), [&](std::byte* data, int bytes, MPI_Request* request) {
      return MPI_Isend(data, bytes, MPI_BYTE, target, kTag, comm_, request);
    });
  }
  requests_.finish(watch());
}

void MpiCommunicator::all_gather(const Collective& collective, const std::byte* input,
                                 std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t mine = partition.count(rank_) * size;
  copy_bytes(output + partition.begin(rank_) * size, input, mine);
  exchange([&](int) { return bytes_at(input, 0, mine); },
           [&](int peer) {
             return bytes_at(output, partition.begin(peer) * size, partition.count(peer) * size);
           });
}

void MpiCommunicator::reduce_scatter(const Collective& collective, const std::byte* input,
                                     float* output, std::span<std::byte> workspace) {
  const Partition& partition = collective.partition;
  const DType wire = collective.wire_type;
  const std::int64_t size = size_of(wire);
  std::byte* free = workspace.data();
  const std::byte* rounded = input;
  if (collective.input_type != wire) {
    kernels::convert_to_wire(nullptr, collective.input_type, input, wire, partition.total(), free);
    rounded = free;
    free += padded_piece(partition.total() * size);
  }
  const std::int64_t count = partition.count(rank_);
  for (int peer = 0; peer < world_; ++peer) {
    contributions_[peer] = peer == rank_ ? rounded + partition.begin(rank_) * size : free;
    if (peer != rank_) free += padded_piece(count * size);
  }
  exchange(
      [&](int peer) {
        return bytes_at(rounded, partition.begin(peer) * size, partition.count(peer) * size);
      },
      [&](int peer) { return bytes_at(contributions_[peer], 0, count * size); });
  if (count > 0)
    kernels::ordered_sum(nullptr, contributions_, wire, wire, count, collective.scale, output);
}

void MpiCommunicator::all_reduce(const Collective& collective, std::byte* data,
                                 std::span<std::byte> /*workspace*/) {
  run_whole(
      "MPI_Iallreduce", collective, data, [&](std::byte* part, int bytes, MPI_Request* request) {
        // unsigned, so that the sum wraps
        return MPI_Iallreduce(MPI_IN_PLACE, part, bytes / 8, MPI_UINT64_T, MPI_SUM, comm_, request);
      });
}

void MpiCommunicator::broadcast(const Collective& collective, std::byte* data) {
  run_whole("MPI_Ibcast", collective, data, [&](std::byte* part, int bytes, MPI_Request* request) {
    return MPI_Ibcast(part, bytes, MPI_BYTE, 0, comm_, request);
  });
}

void MpiCommunicator::all_to_all(const Collective& collective, const std::byte* input,
                                 std::byte* output) {
  const Partition& partition = collective.partition;
  const std::int64_t size = size_of(collective.input_type);
  const std::int64_t mine = partition.count(rank_) * size;
  copy_bytes(output + rank_ * mine, input + partition.begin(rank_) * size, mine);
  exchange(
      [&](int peer) {
        return bytes_at(input, partition.begin(peer) * size, partition.count(peer) * size);
      },
      [&](int peer) { return bytes_at(output, peer * mine, mine); });
}

void MpiCommunicator::send(const Collective& collective, const std::byte* input) {
  run_whole("MPI_Issend", collective, input, [&](std::byte* part, int bytes, MPI_Request* request) {
    // Synchronous, so that code that deadlocks without buffering does so on every backend.
    return MPI_Issend(part, bytes, MPI_BYTE, collective.peer, kTag, comm_, request);
  });
}

void MpiCommunicator::receive(const Collective& collective, std::byte* output) {
  run_whole("MPI_Irecv", collective, output, [&](std::byte* part, int bytes, MPI_Request* request) {
    return MPI_Irecv(part, bytes, MPI_BYTE, collective.peer, kTag, comm_, request);
  });
}

void MpiCommunicator::meet(const Collective& /*collective*/) { barrier(); }

void MpiCommunicator::barrier() {
  requests_.begin("MPI_Ibarrier",
                  [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  requests_.finish(watch());
}

}  // namespace strata::comm
