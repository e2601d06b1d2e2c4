#include "comm/fail_together.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <thread>

#include "comm/factory.h"

namespace strata::comm {
namespace {

/// Returns what each of three ranks learns when rank 1 calls `fail`.
std::vector<std::optional<SharedFailure>> heard(const std::function<void()>& fail) {
  constexpr int kWorld = 3;
  auto communicators = make_thread_communicators(kWorld);
  std::vector<std::optional<SharedFailure>> failures(kWorld);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kWorld; ++rank)
    threads.emplace_back([&, rank] {
      failures[rank] = fail_together(*communicators[rank], [&] {
        if (rank == 1) fail();
      });
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

TEST(Together, AllHearThatNothingFailed) {
  for (const auto& failure : heard([] {})) EXPECT_FALSE(failure);
}

TEST(Together, AllHearWhatFailedOnOne) {
  for (const auto& failure : heard([] { throw ConfigError("no such thing"); })) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ExitCode::configuration);
    EXPECT_EQ(failure->rank, 1);
    EXPECT_EQ(failure->messages, (std::vector<std::string>{"", "no such thing", ""}));
  }
}

TEST(Together, MissingMemoryIsTheMachinesFault) {
  for (const auto& failure : heard([] { throw std::bad_alloc(); })) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, ExitCode::host);
    EXPECT_EQ(failure->message_with_rank(), "rank 1: out of host memory");
  }
}

}  // namespace
}  // namespace strata::comm
