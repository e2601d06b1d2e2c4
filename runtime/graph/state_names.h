// The names of persistent storage: one scheme, so that Programs, checkpoints and tests agree.
#pragma once

#include <cstdint>
#include <string>

namespace strata::runtime {

/// Holds parameters in the type of their unit: the whole unit, or this rank's shard under
/// parameter_shard_name.
inline std::string parameter_name(const std::string& unit) { return "parameter/" + unit; }
inline std::string parameter_shard_name(const std::string& unit) {
  return "parameter_shard/" + unit;
}
/// Holds the fp32 master copy (absent if the unit is kept in fp32 or its master is packed).
inline std::string master_name(const std::string& unit) { return "master/" + unit; }
/// Holds the lower half of a packed master, beside a bf16 parameter.
inline std::string remainder_name(const std::string& unit) { return "remainder/" + unit; }
inline std::string moment1_name(const std::string& unit) { return "moment1/" + unit; }
inline std::string moment2_name(const std::string& unit) { return "moment2/" + unit; }
/// Holds the scales of 8-bit moments: one fp32 value per block.
inline std::string moment1_scale_name(const std::string& unit) { return "moment1_scale/" + unit; }
inline std::string moment2_scale_name(const std::string& unit) { return "moment2_scale/" + unit; }
/// Holds all of the above for the tile that starts at `first_element` of the unit, if it does not
/// live on the device.
inline std::string record_name(const std::string& unit, std::int64_t first_element) {
  return "record/" + unit + "/" + std::to_string(first_element);
}
/// Holds the fp32 gradient accumulator: the whole unit or this rank's shard.
inline std::string accumulator_name(const std::string& unit) { return "gradient/" + unit; }
/// Holds the fp32 sum over 2^level x world virtual ranks of this rank's shard, awaiting another.
inline std::string partial_sum_name(const std::string& unit, int level) {
  return "partial_sum" + std::to_string(level) + "/" + unit;
}

inline constexpr const char* kStepState = "step_state";  ///< kernels::StepState
/// int64 [1]: the step's valid targets over all ranks and micro-steps; its pinned twin counts those
/// of this rank.
inline constexpr const char* kStepTargets = "step_targets";
inline constexpr const char* kStepControl = "step_control";  ///< kernels::StepControl
inline constexpr const char* kStepMetrics = "step_metrics";  ///< kernels::StepMetrics
/// Seed and step of the last step, for updates that run in the next one.
inline constexpr const char* kUpdateRandom = "update_random";
inline constexpr const char* kAgreedWord = "agreed_word";  ///< int64 [AgreedWord::kWords]

// Pinned memory, which the host reads and writes between Programs.
inline constexpr const char* kHostWord = "host/word";  ///< the host's summand of the agreed word
inline constexpr const char* kHostMetrics = "host/metrics";  ///< StepMetrics [2], by step modulo 2

// Memory for saving, if the Plan has it (SaveMemory).
inline constexpr const char* kSaveBlocks = "save/blocks";  ///< blocks that this rank writes
/// Pieces from other ranks for this rank's blocks: those of a stretch, or all of a snapshot's.
inline constexpr const char* kSaveArriving = "save/arriving";
/// Pieces that other ranks write, if a snapshot goes through windows.
inline constexpr const char* kSaveLeaving = "save/leaving";
/// Not used: with them a snapshot takes as much on this rank as on any, in pinned and in other
/// memory.
inline constexpr const char* kSnapshotRest = "save/rest";
inline constexpr const char* kSnapshotHostRest = "save/host_rest";

}  // namespace strata::runtime
