#include <chrono>
#include <thread>

#include "comm/host_stream.h"
#include "comm/testing/arrivals.h"
#include "comm/testing/conformance.h"
#include "comm/testing/test_arena.h"
#include "core/error.h"

namespace strata::comm {
namespace {

using Clock = std::chrono::steady_clock;
/// Who is not woken waits for a minute at least; a busy machine may take some seconds.
constexpr std::chrono::seconds kSoon{30};

/// Returns the error that the communicator throws, which must come soon; does not end the test.
std::string error_of(Communicator& communicator, const Collective& collective, std::byte* data) {
  HostStream stream;
  std::byte workspace[64];
  const auto start = Clock::now();
  std::string text = "nothing";
  try {
    communicator.run(stream, collective, data, data, workspace);
  } catch (const Error& error) {
    text = error.what();
  }
  EXPECT_LT(Clock::now() - start, kSoon);
  return text;
}

/// Runs ranks that have all registered an arena. A peer that fails or leaves at once may else reach
/// a rank of another host before that one has heard of the others, and end the registration.
void run_registered(const TestedBackend& backend,
                    const std::function<void(Communicator& communicator, TestArena& arena)>& body) {
  const Arrivals registered;
  backend.run_ranks(backend.world, [&](Communicator& communicator) {
    TestArena arena(communicator, 4096);
    registered.meet(communicator.size());
    body(communicator, arena);
  });
}

Collective word_all_reduce(int world) {
  Collective collective{.kind = CollectiveKind::all_reduce, .input_type = DType::i64};
  collective.partition.bounds.assign(static_cast<std::size_t>(world) + 1, 1);
  collective.partition.bounds[0] = 0;
  return collective;
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_P(CommFailure, AbortWakesEveryoneAndStaysForEver) {
  run_ranks([](Communicator& communicator) {
    TestArena arena(communicator, 4096);
    const Collective collective = word_all_reduce(communicator.size());
    if (communicator.rank() == communicator.size() - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others wait by now
      communicator.abort("no space left on /data");
    }
    const std::string reason =
        "rank " + std::to_string(communicator.size() - 1) + ": no space left on /data";
    for (int call = 0; call < 3; ++call)
      EXPECT_EQ(error_of(communicator, collective, arena.take(8)), reason);
    EXPECT_EQ(error_of(communicator, {.kind = CollectiveKind::barrier}, nullptr), reason);
  });
}

// Does what an executor does: it says where it was, and passes on what it heard.
TEST_P(CommFailure, NamesTheFirstCauseOnceHoweverOftenItIsHandedOn) {
  run_registered(GetParam(), [](Communicator& communicator, TestArena& arena) {
    const std::string me = "rank " + std::to_string(communicator.rank()) + ": ";
    if (communicator.rank() == 1)
      communicator.abort(me +
                         "instruction 'embed' failed: rank 0: instruction 'gather' failed: "
                         "rank 1: instruction 'load' failed: no space left on /data");
    const std::string cause = "rank 1: instruction 'load' failed: no space left on /data";
    for (int call = 0; call < 2; ++call) {
      const std::string text =
          error_of(communicator, word_all_reduce(communicator.size()), arena.take(8));
      EXPECT_EQ(text, cause);
      communicator.abort(me + "instruction 'reduce' failed: " + text);
    }
  });
}

TEST_P(CommFailure, AbortFromAnotherThreadWakesTheWaitingOne) {
  run_ranks([](Communicator& communicator) {
    if (communicator.rank() != 0) {
      // Takes no part: only another thread of rank 0 can wake rank 0.
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return;
    }
    std::thread other([&communicator] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      communicator.abort("stopped");
    });
    EXPECT_EQ(error_of(communicator, {.kind = CollectiveKind::barrier}, nullptr),
              "rank 0: stopped");
    other.join();
  });
}

TEST_P(CommFailure, AbortWakesSenderAndReceiver) {
  run_registered(GetParam(), [](Communicator& communicator, TestArena& arena) {
    Collective message = word_all_reduce(communicator.size());
    // Rank 1 waits for a message that rank 0 never sends; rank 0 gives up.
    if (communicator.rank() > 1) return;
    message.kind = communicator.rank() == 0 ? CollectiveKind::barrier : CollectiveKind::receive;
    message.peer = communicator.rank() == 0 ? -1 : 0;
    if (communicator.rank() == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      communicator.abort("stopped");
    }
    EXPECT_EQ(error_of(communicator, message, arena.take(8)), "rank 0: stopped");
  });
}

TEST_P(CommFailure, NamesCollectivesThatDiffer) {
  run_registered(GetParam(), [](Communicator& communicator, TestArena& arena) {
    Collective collective = word_all_reduce(communicator.size());
    if (communicator.rank() == 1) collective.kind = CollectiveKind::broadcast;
    const std::string text = error_of(communicator, collective, arena.take(8));
    expect_contains(text, "collective " + std::to_string(communicator.begun()) + " differs");
    expect_contains(text, "rank 0 runs 'all_reduce int64, 1 elements");
    expect_contains(text, "rank 1 runs 'broadcast int64, 1 elements");
  });
}

TEST_P(CommFailure, RefusesNonsenseOnAllRanks) {
  run_registered(GetParam(), [](Communicator& communicator, TestArena& arena) {
    Collective collective = word_all_reduce(communicator.size());
    if (communicator.rank() == 0) collective.input_type = DType::f32;
    const std::string text = error_of(communicator, collective, arena.take(8));
    expect_contains(text, "all_reduce sums int64 only");
    if (communicator.rank() != 0) expect_contains(text, "rank 0: ");
  });
}

TEST_P(CommFailure, NamesARankThatLeft) {
  run_registered(GetParam(), [](Communicator& communicator, TestArena& arena) {
    if (communicator.rank() == 1) return;  // its communicator is destroyed without close
    const std::string text =
        error_of(communicator, word_all_reduce(communicator.size()), arena.take(8));
    expect_contains(text, "rank 1 ");
    expect_contains(text, "in collective 1 'all_reduce int64");
  });
}

}  // namespace
}  // namespace strata::comm
