// Measures where the time of a step goes, by phase, for `wall_clock_breakdown`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/execute/observer.h"

namespace strata::train {

/// The executor that measures: a CPU's, whose threads do the work, or a device's, which must be
/// asked for device times.
enum class Measured : std::uint8_t { threads, device };

/// Adds up this rank's times, without evaluation.
class StepBreakdown final : public runtime::Observer {
 public:
  /// Gives a text after every `every` steps (0: ten times in all) and after the last of `steps`.
  StepBreakdown(Measured measured, std::int64_t every, std::int64_t steps);

  void begin(const runtime::Program& program, int instruction) override;
  void end(const runtime::Program& program, int instruction) override;
  void waited(const runtime::Program& program, int instruction, runtime::Queue on,
              std::int64_t ns) override;
  [[nodiscard]] bool wants_device_times() const override { return measured_ == Measured::device; }
  void executed(const runtime::Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;

  /// Call it after each step, in their order; `seconds`: time since the step before. Returns a text
  /// if one is due, with means since the last: "wall clock of steps 3 to 4: step 4.32 ms: forward
  /// 1.20 ms, backward 2.51 ms, update 0.30 ms, waiting 0.11 ms; beside that communication 0.40
  /// ms". Waiting is that of computation for other queues, measured on the CPU only. Phases without
  /// time are left out, except the first three.
  std::optional<std::string> complete(std::int64_t step, double seconds);

 private:
  using Time = std::atomic<std::int64_t>;

  void add(const runtime::Instruction& in, std::int64_t ns);
  std::string describe();

  const Measured measured_;
  const std::int64_t every_, last_step_;
  std::int64_t steps_ = 0;  ///< steps since the last text
  double seconds_ = 0;
  std::array<Time, runtime::kPasses> passes_{};  ///< time on the compute queue, by Pass
  std::array<Time, runtime::kQueues> queues_{};  ///< time on the other queues
  Time waited_{0};
  std::array<std::int64_t, runtime::kQueues> begun_ns_{};  ///< one thread writes each
};

}  // namespace strata::train
