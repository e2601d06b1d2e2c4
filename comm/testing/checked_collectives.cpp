#include "comm/testing/checked_collectives.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "comm/host_stream.h"
#include "comm/testing/scalar_model.h"

namespace strata::comm {
namespace {

std::byte pattern_byte(int rank, std::int64_t index, std::uint64_t seed) {
  return static_cast<std::byte>(
      mix(seed * 64 + static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(index)));
}

void fill(std::byte* memory, std::int64_t bytes, int rank, std::int64_t first_index,
          std::uint64_t seed) {
  for (std::int64_t i = 0; i < bytes; ++i) memory[i] = pattern_byte(rank, first_index + i, seed);
}

void expect_pattern(const std::byte* memory, std::int64_t bytes, int rank, std::int64_t first_index,
                    std::uint64_t seed, const std::string& what) {
  for (std::int64_t i = 0; i < bytes; ++i)
    if (memory[i] != pattern_byte(rank, first_index + i, seed)) {
      ADD_FAILURE() << what << ": byte " << first_index + i << " of rank " << rank << " is wrong";
      return;
    }
}

/// Runs and checks one collective on this rank.
class Check {
 public:
  Check(Communicator& communicator, TestArena& arena, const Collective& collective,
        std::uint64_t seed)
      : communicator_(communicator),
        arena_(arena),
        collective_(collective),
        seed_(seed),
        rank_(communicator.rank()),
        world_(communicator.size()),
        size_(size_of(collective.input_type)),
        what_(describe(collective) + ", rank " + std::to_string(rank_) + ", seed " +
              std::to_string(seed)) {
    if (collective.kind != CollectiveKind::barrier) bytes_ = operand_bytes(collective, rank_);
  }

  void all_gather(bool in_place) {
    std::byte* output = take_output();
    std::byte* input = in_place ? output + begin(rank_) : arena_.take(bytes_.input);
    fill(input, bytes_.input, rank_, 0, seed_);
    run(input, output);
    for (int peer = 0; peer < world_; ++peer)
      expect_pattern(output + begin(peer), count(peer), peer, 0, seed_, what_);
  }

  void reduce_scatter(bool in_place) {
    const Partition& partition = collective_.partition;
    std::byte* input = arena_.take(bytes_.input);
    std::byte* output = in_place ? input + begin(rank_) : take_output();
    for (std::int64_t i = 0; i < partition.total(); ++i)
      store(input, collective_.input_type, i, value(rank_, i));
    run(input, output);
    for (std::int64_t i = 0; i < partition.count(rank_); ++i) {
      std::vector<float> contributions;
      for (int peer = 0; peer < world_; ++peer)
        contributions.push_back(value(peer, partition.begin(rank_) + i));
      const float expected = tree_sum(contributions, collective_.wire_type, collective_.scale);
      const float found = load(output, DType::f32, i);
      if (std::isnan(expected) && std::isnan(found)) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(expected), std::bit_cast<std::uint32_t>(found))
          << what_ << ": element " << i << " is " << found << " instead of " << expected;
    }
  }

  void all_reduce() {
    std::byte* data = arena_.take(bytes_.input);
    for (std::int64_t i = 0; i < bytes_.input / 8; ++i) {
      const std::uint64_t number = mix(seed_ * 64 + static_cast<std::uint64_t>(rank_), i);
      std::memcpy(data + i * 8, &number, 8);
    }
    run(data, data);
    for (std::int64_t i = 0; i < bytes_.input / 8; ++i) {
      std::uint64_t expected = 0;
      for (int peer = 0; peer < world_; ++peer)
        expected += mix(seed_ * 64 + static_cast<std::uint64_t>(peer), i);
      std::uint64_t found;
      std::memcpy(&found, data + i * 8, 8);
      ASSERT_EQ(expected, found) << what_ << ": element " << i;
    }
  }

  void broadcast() {
    std::byte* data = arena_.take(bytes_.input);
    fill(data, bytes_.input, rank_, 0, seed_);
    run(data, data);
    expect_pattern(data, bytes_.input, 0, 0, seed_, what_);
  }

  void all_to_all() {
    std::byte* input = arena_.take(bytes_.input);
    std::byte* output = take_output();
    fill(input, bytes_.input, rank_, 0, seed_);
    run(input, output);
    for (int peer = 0; peer < world_; ++peer)
      expect_pattern(output + peer * count(rank_), count(rank_), peer, begin(rank_), seed_, what_);
  }

  void send() {
    std::byte* input = arena_.take(bytes_.input);
    fill(input, bytes_.input, rank_, 0, seed_);
    run(input, nullptr);
  }

  void receive() {
    std::byte* output = take_output();
    run(nullptr, output);
    expect_pattern(output, bytes_.output, collective_.peer, 0, seed_, what_);
  }

  void barrier() { run(nullptr, nullptr); }

 private:
  [[nodiscard]] std::int64_t begin(int rank) const {
    return collective_.partition.begin(rank) * size_;
  }
  [[nodiscard]] std::int64_t count(int rank) const {
    return collective_.partition.count(rank) * size_;
  }
  [[nodiscard]] float value(int rank, std::int64_t index) const {
    return pattern(collective_.input_type, rank, index, seed_);
  }
  std::byte* take_output() {
    std::byte* output = arena_.take(bytes_.output);
    std::memset(output, 0xee, static_cast<std::size_t>(bytes_.output));
    return output;
  }
  void run(const std::byte* input, std::byte* output) {
    const std::int64_t bytes = communicator_.workspace_bytes(collective_);
    HostStream stream;
    communicator_.run(stream, collective_, input, output,
                      {arena_.take(bytes), static_cast<std::size_t>(bytes)});
    // Overwrites the input, which is allowed now; a peer that still reads it would see this.
    const bool in_place = output >= input && output < input + bytes_.input;
    if (input != nullptr && !in_place && collective_.kind != CollectiveKind::all_gather)
      std::memset(const_cast<std::byte*>(input), 0xdd, static_cast<std::size_t>(bytes_.input));
  }

  Communicator& communicator_;
  TestArena& arena_;
  const Collective& collective_;
  std::uint64_t seed_;
  int rank_;
  int world_;
  std::int64_t size_;
  std::string what_;
  OperandBytes bytes_;
};

}  // namespace

void run_checked(Communicator& communicator, TestArena& arena, const Collective& collective,
                 std::uint64_t seed, bool in_place) {
  arena.reset();
  Check check(communicator, arena, collective, seed);
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      return check.all_gather(in_place);
    case CollectiveKind::reduce_scatter:
      // Only fp32 contributions are as wide as their sum.
      return check.reduce_scatter(in_place && collective.input_type == DType::f32);
    case CollectiveKind::all_reduce:
      return check.all_reduce();
    case CollectiveKind::broadcast:
      return check.broadcast();
    case CollectiveKind::all_to_all:
      return check.all_to_all();
    case CollectiveKind::send:
      return check.send();
    case CollectiveKind::receive:
      return check.receive();
    case CollectiveKind::barrier:
      return check.barrier();
  }
}

std::vector<Partition> interesting_partitions(int world) {
  std::vector<Partition> partitions(6, Partition{{0}});
  for (int rank = 0; rank < world; ++rank) {
    const auto add = [&](std::size_t which, std::int64_t count) {
      partitions[which].bounds.push_back(partitions[which].total() + count);
    };
    add(0, 512);
    add(1, 1 + 97 * ((rank * 5) % 7));     // uneven, odd
    add(2, rank % 2 == 0 ? 0 : 33);        // empty pieces
    add(3, rank == world - 1 ? 1031 : 0);  // all on the last rank
    add(4, 0);                             // nothing
    add(5, rank == 0 ? 1 : 0);             // a single element
  }
  return partitions;
}

}  // namespace strata::comm
