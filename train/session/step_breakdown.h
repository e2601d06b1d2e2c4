// Where the time of a step goes, by phase: what `wall_clock_breakdown` prints.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/execute/observer.h"

namespace strata::train {

/// Whose queues an executor runs: threads that work themselves, or a device's, which is asked for
/// times of its own.
enum class Measured : std::uint8_t { threads, device };

/// Adds up this rank's times; evaluation does not count.
class StepBreakdown final : public runtime::Observer {
 public:
  /// A text after every `every` steps and after the last of `steps`; 0: ten of them.
  StepBreakdown(Measured measured, std::int64_t every, std::int64_t steps);

  void begin(const runtime::Program& program, int instruction) override;
  void end(const runtime::Program& program, int instruction) override;
  void waited(const runtime::Program& program, int instruction, runtime::Queue on,
              std::int64_t ns) override;
  [[nodiscard]] bool wants_device_times() const override { return measured_ == Measured::device; }
  void executed(const runtime::Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;

  /// After each step, in their order, `seconds` after the one before. Where a text is due, means
  /// since the last one: "wall clock of steps 3 to 4: step 4.32 ms: forward 1.20 ms, backward 2.51
  /// ms, update 0.30 ms, waiting 0.11 ms; beside that communication 0.40 ms". Waiting, of
  /// computation for the others, is measured on the CPU only. What did not happen is left out, but
  /// for the first three.
  std::optional<std::string> complete(std::int64_t step, double seconds);

 private:
  static constexpr std::size_t kPasses = 3;
  using Time = std::atomic<std::int64_t>;

  void add(const runtime::Instruction& in, std::int64_t ns);
  std::string describe();

  const Measured measured_;
  const std::int64_t every_, last_step_;
  std::int64_t steps_ = 0;  ///< since the last text
  double seconds_ = 0;
  std::array<Time, kPasses> passes_{};           ///< of the compute queue, by Pass
  std::array<Time, runtime::kQueues> queues_{};  ///< of the other queues
  Time waited_{0};
  std::array<std::int64_t, runtime::kQueues> begun_ns_{};  ///< each of one thread
};

}  // namespace strata::train
