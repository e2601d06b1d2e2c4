// Makes a report from a profile: time per operation and shape, and the least the machine needs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "runtime/execute/profile.h"

namespace strata::train {

/// All instructions of one operation, shape and queue; numbers are per step, averaged over the
/// steps that count.
struct ProfileRow {
  runtime::Queue queue = runtime::Queue::compute;
  std::string operation;
  std::string shape;  ///< operands: "bf16 [512,768] [2304,768] [512,2304]", results last
  double count = 0;
  double seconds = 0;
  double share = 0;  ///< part of the step; shares of parallel queues overlap
  double flops = 0, bytes = 0;
  double bound_seconds = 0;  ///< least time at the machine's rates; 0: rates not known
  [[nodiscard]] double loss_seconds() const { return seconds - bound_seconds; }
};

/// Operands of an instruction, equal neighbours grouped: "fp32 [1024] x4, uint8 [64]".
std::string shape_of(const runtime::Instruction& in);

struct ProfileReport {
  std::int64_t first_step = 0, steps = 0;  ///< steps are counted from 0
  double step_seconds = 0;
  std::array<runtime::QueueTime, runtime::kQueues> queues{};  ///< summed over all steps
  machine::Machine machine;
  std::vector<ProfileRow> rows;  ///< largest loss first
};

/// Makes the report. Call it when the executor is idle, before it is destroyed.
ProfileReport make_report(const runtime::ProfileRecorder& profile, const machine::Machine& machine);

/// One rank's report as a JSON object.
std::string to_json(const ProfileReport& report, int rank);
/// Text of the whole file, from the text of each rank, by rank.
std::string profile_file(std::string_view device, const std::vector<std::string>& ranks);
/// Text for people: what the queues did, then the rows that lose most time.
std::string describe(const ProfileReport& report, int most_rows = 12);

}  // namespace strata::train
