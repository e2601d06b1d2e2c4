// The place where the ranks of one test meet on this host.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "core/host_meeting.h"

namespace strata {

/// A place where no other test meets.
inline HostMeeting meeting(int rank, int world = 2) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return {.place = std::string(test->name()) + " " + std::to_string(::getpid()),
          .rank = rank,
          .world = world,
          .prefix = "run/0/",
          .patience = std::chrono::seconds(20)};
}

}  // namespace strata
