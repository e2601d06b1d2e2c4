// Lists what fills each tier at every instruction of a training Program, and when it runs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compile/step_programs.h"

namespace strata::train {

/// The purpose of bytes, as reports tell them apart.
enum class Purpose : std::uint8_t { parameter, gradient, optimizer, activation, scratch, other };
inline constexpr std::array kAllPurposes{Purpose::parameter,  Purpose::gradient, Purpose::optimizer,
                                         Purpose::activation, Purpose::scratch,  Purpose::other};
inline constexpr std::size_t kPurposes = kAllPurposes.size();
std::string_view name_of(Purpose purpose);

using PurposeBytes = std::array<std::int64_t, kPurposes>;

/// Milliseconds from the beginning of the Program.
struct TimeSpan {
  double begin_ms = 0, end_ms = 0;
  bool operator==(const TimeSpan&) const = default;
};

/// Vectors are by instruction. Borrows the Program.
struct ProgramTimeline {
  const runtime::Program* program = nullptr;
  double runs_per_step = 1;
  std::vector<std::array<PurposeBytes, runtime::kTiers>> live;
  std::vector<TimeSpan> foreseen;
  // Empty where nothing was measured.
  std::vector<std::optional<TimeSpan>> measured;   ///< of the last run that was measured
  std::vector<std::optional<double>> measured_ms;  ///< mean of all runs that were measured

  [[nodiscard]] std::int64_t bytes(runtime::Tier tier, std::size_t instruction) const;
  /// The first instruction at which most bytes of a tier are in use.
  [[nodiscard]] std::size_t peak(runtime::Tier tier) const;
  /// Mean over the foreseen time of the Program, bytes.
  [[nodiscard]] double mean_bytes(runtime::Tier tier) const;
  /// Returns when memory is as instruction i needs it: instructions of other queues begin in
  /// another order than the list's, so this is the latest beginning so far. Milliseconds.
  [[nodiscard]] std::vector<double> foreseen_moments() const;
};

/// The timeline of one of `programs`. Persistent bytes count at every instruction, whether the
/// Program touches them or not; of the disk only those that it holds (StepPrograms::disk_bytes).
ProgramTimeline make_timeline(const runtime::Program& program,
                              const compile::StepPrograms& programs, double runs_per_step,
                              std::vector<TimeSpan> foreseen);

}  // namespace strata::train
