// Checks that ranks of different machines get one clock.
#include "train/session/trace_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace strata::train {
namespace {

/// Rank 1 of two. Rank 0 is on another machine; each time the ranks exchange clocks, its clock is
/// behind by the next of `ahead_ns`.
class OtherMachine final : public comm::Communicator {
 public:
  explicit OtherMachine(std::vector<std::int64_t> ahead_ns) : ahead_ns_(std::move(ahead_ns)) {}
  [[nodiscard]] int rank() const override { return 1; }
  [[nodiscard]] int size() const override { return 2; }
  [[nodiscard]] std::string_view backend() const override { return "test"; }
  void register_arena(const comm::ArenaRegion&) override {}
  void unregister_arena(const std::byte*) override {}
  [[nodiscard]] comm::Exchange exchange() const override { return comm::Exchange::none; }
  void execute(kernels::Stream&, const comm::Collective& gather, const std::byte* input,
               std::byte* output, std::span<std::byte>) override {
    if (gather.partition.count(1) != sizeof(std::int64_t)) {
      std::memset(output, 'x', static_cast<std::size_t>(gather.partition.count(0)));
      return;
    }
    std::int64_t number = 0;
    std::memcpy(&number, input, sizeof number);
    if (number > 1'000'000) number = times_++ == 0 ? kZero : number - ahead_ns_.at(next_++);
    std::memcpy(output, &number, sizeof number);
  }
  void abort(const std::string&, ExitCode) noexcept override {}
  void close() override {}

  static constexpr std::int64_t kZero = 5'000'000'000;  ///< rank 0's clock, the first time

 private:
  std::vector<std::int64_t> ahead_ns_;
  std::size_t next_ = 0;
  int times_ = 0;
};

TEST(TraceFile, AFewSlowRoundsDoNotMoveTheClockOfAnotherMachine) {
  OtherMachine ranks(
      {70'000, 900'000, 70'003, 70'001, -4'000'000, 70'002, 800'000, 70'004, 69'999});
  EXPECT_EQ(common_zero_ns(ranks), OtherMachine::kZero + 70'002);
}

}  // namespace
}  // namespace strata::train
