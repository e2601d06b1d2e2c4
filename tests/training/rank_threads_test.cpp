// A rank thread that fails inside a step destroys its engine and arena while the others still run.
#include "tests/training/rank_threads.h"

#include <gtest/gtest.h>

#include <atomic>

#include "comm/host_stream.h"
#include "core/error.h"
#include "tests/training/ranks.h"
#include "train/engine/weights.h"

namespace strata::tests {
namespace {

constexpr int kWorld = 3;

/// Throws before the instruction at one place of the second step.
class Fault final : public runtime::Observer {
 public:
  explicit Fault(std::int64_t place) : left_(place) {}
  void begin(const runtime::Program&, int) override {
    if (armed && left_-- == 0) throw DataError("no luck");
  }
  void end(const runtime::Program&, int) override {}
  bool armed = false;

 private:
  std::atomic<std::int64_t> left_;
};

TrainingCase training_case() {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(kWorld, 2 * kWorld, 2);
  training.options.zero.stage = 3;
  training.world = kWorld;
  return training;
}

void fill(std::int64_t step, int /*micro_step*/, const train::MicroBatch& batch) {
  for (std::size_t i = 0; i < batch.tokens.size(); ++i)
    batch.tokens[i] = batch.targets[i] =
        static_cast<std::int32_t>((i + static_cast<std::size_t>(step)) % 90);
}

/// Returns the error thrown when the last rank fails at `place`, or "" if the step ends before it.
std::string error_at(std::int64_t place) {
  try {
    on_rank_threads(kWorld, [&](comm::Communicator& communicator) {
      Fault fault(place);
      train::EngineParts parts;
      parts.programs = build_rank(training_case(), communicator);
      parts.site = std::make_unique<train::CpuSite>(communicator);
      parts.observers.push_back(&fault);
      train::Engine engine(std::move(parts));
      train::initialize_weights(engine, 1);
      engine.train_step(0, fill);
      fault.armed = communicator.rank() == kWorld - 1;
      engine.train_step(1, fill);
      communicator.close();
    });
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(RankThreads, AFailureAnywhereInAStepIsThrownAndNothingCrashes) {
  int failures = 0;
  for (std::int64_t place = 0;; place += 7, ++failures) {
    const std::string error = error_at(place);
    if (error.empty()) break;
    ASSERT_NE(error.find("no luck"), std::string::npos) << "place " << place << ": " << error;
  }
  EXPECT_GT(failures, 10);
}

TEST(RankThreads, ARankThatLeavesIsMissed) {
  try {
    on_rank_threads(2, [](comm::Communicator& communicator) {
      comm::HostStream stream;
      if (communicator.rank() == 0) communicator.run(stream, {}, nullptr, nullptr, {});
    });
    FAIL() << "nobody missed rank 1";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("has left without closing"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace strata::tests
