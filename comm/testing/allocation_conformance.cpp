#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/test_arena.h"
#include "core/testing/allocation_counter.h"

namespace strata::comm {
namespace {

constexpr std::int64_t kElements = 3000;  // per rank

/// One collective of every kind with its operands, all made before the first runs.
class Medley {
 public:
  Medley(Communicator& communicator, TestArena& arena) : communicator_(communicator) {
    for (int rank = 0; rank <= communicator.size(); ++rank)
      partition_.bounds.push_back(rank * kElements);
    for (const DType type : {DType::f32, DType::bf16}) {
      add(arena, CollectiveKind::all_gather, type);
      add(arena, CollectiveKind::reduce_scatter, type);
      add(arena, CollectiveKind::all_to_all, type);
    }
    add(arena, CollectiveKind::broadcast, DType::f32);
    add(arena, CollectiveKind::all_reduce, DType::i64);
    add(arena, CollectiveKind::barrier, DType::f32);
    // Ranks send and receive in pairs; an odd last rank does not.
    const int peer = communicator.rank() ^ 1;
    if (peer < communicator.size())
      add(arena, peer > communicator.rank() ? CollectiveKind::send : CollectiveKind::receive,
          DType::f32, peer);
  }

  void run() {
    for (const Call& call : calls_)
      communicator_.run(stream_, call.collective, call.input, call.output, call.workspace);
  }
  /// Returns when all ranks have called it.
  void meet() { communicator_.run(stream_, barrier_, nullptr, nullptr, {}); }

 private:
  struct Call {
    Collective collective;
    std::byte* input;
    std::byte* output;
    std::span<std::byte> workspace;
  };

  void add(TestArena& arena, CollectiveKind kind, DType type, int peer = -1) {
    Call call{
        {.kind = kind, .input_type = type, .partition = partition_, .peer = peer}, {}, {}, {}};
    const OperandBytes bytes = operand_bytes(call.collective, communicator_.rank());
    call.input = arena.take(bytes.input);
    std::memset(call.input, 0, static_cast<std::size_t>(bytes.input));
    const bool in_place = kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast;
    call.output = in_place ? call.input : arena.take(bytes.output);
    const std::int64_t workspace = communicator_.workspace_bytes(call.collective);
    call.workspace = {arena.take(workspace), static_cast<std::size_t>(workspace)};
    calls_.push_back(std::move(call));
  }

  Communicator& communicator_;
  HostStream stream_;
  Collective barrier_;
  Partition partition_;
  std::vector<Call> calls_;
};

TEST_P(CommConformance, AllocatesNothingFromItsThirdRunOn) {
  if (!tests::can_count_allocations()) GTEST_SKIP() << "a sanitizer owns the allocator";
  if (GetParam().simulates_kernels) GTEST_SKIP() << "the simulated device allocates";
  run_ranks([this](Communicator& communicator) {
    TestArena arena(communicator, 4 << 20);
    Medley medley(communicator, arena);
    const bool counts = !GetParam().ranks_share_process || communicator.rank() == 0;
    for (int i = 0; i < 2; ++i) medley.run();
    medley.meet();
    if (counts) tests::start_counting_allocations();
    medley.meet();
    for (int i = 0; i < 3; ++i) medley.run();
    medley.meet();
    if (counts) {
      const tests::AllocationCount count = tests::stop_counting_allocations();
      EXPECT_EQ(count.allocations, 0) << "rank " << communicator.rank() << "\n" << count.first;
    }
    medley.meet();
    arena.close();
  });
}

}  // namespace
}  // namespace strata::comm
