// What an engine refuses before it runs anything.
#include <gtest/gtest.h>

#include "comm/factory.h"
#include "core/error.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

TEST(Engine, RefusesAProgramThatTheVerifierRefuses) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(1, 8, 1);
  const auto communicator = comm::make_communicator({}, "single");
  const auto make = [&](std::int64_t shift_bytes) {
    train::EngineParts parts;
    parts.programs = build_rank(training, *communicator);
    parts.programs.train.begin()->second.instructions.front().outputs.front().offset_bytes +=
        shift_bytes;
    parts.communicator = communicator.get();
    return std::make_unique<train::Engine>(std::move(parts));
  };
  EXPECT_THROW(make(64), InternalError);
}

}  // namespace
}  // namespace strata::tests
