// One suite for every communicator. A backend instantiates it in a few lines by saying how it
// starts ranks:
//   INSTANTIATE_TEST_SUITE_P(Threads, CommConformance, testing::ValuesIn(...), backend_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace strata::comm {

using RankBody = std::function<void(Communicator& communicator)>;

struct TestedBackend {
  std::string name;
  int world = 1;
  /// Runs the body on each of `world` ranks, each with a communicator that is new or has nothing
  /// left over, and returns when all have ended. A failed expectation or an escaped exception on
  /// any rank fails the current test.
  std::function<void(int world, const RankBody& body)> run_ranks;
  bool ranks_share_process = false;
  bool simulates_kernels = false;  ///< the simulation allocates
};

inline void PrintTo(const TestedBackend& backend, std::ostream* out) {
  *out << backend.name << " of " << backend.world;
}

class RankTest : public testing::TestWithParam<TestedBackend> {
 protected:
  void run_ranks(const RankBody& body) { GetParam().run_ranks(GetParam().world, body); }
};

/// Tests for every backend.
class CommConformance : public RankTest {};
/// Tests for backends that survive an abort (MPI ends the job).
class CommFailure : public RankTest {};

inline std::string backend_name(const testing::TestParamInfo<TestedBackend>& info) {
  return info.param.name + std::to_string(info.param.world);
}

}  // namespace strata::comm
