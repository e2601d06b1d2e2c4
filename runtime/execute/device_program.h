// A Program as a device runs it: bound to addresses, with the events that its waits need, cut at
// the instructions that need the host.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/device.h"
#include "runtime/execute/bound_instruction.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/host_queues.h"

namespace strata::runtime {

using EventPointer = std::unique_ptr<kernels::Event>;

/// The queues that are streams of the device.
inline constexpr std::array<int, 4> kDeviceQueues{
    static_cast<int>(Queue::compute), static_cast<int>(Queue::communication),
    static_cast<int>(Queue::upload), static_cast<int>(Queue::download)};

/// Consecutive instructions that the device can run without the host, or one that the host runs.
struct Stretch {
  std::int32_t first = 0;
  std::int32_t last = 0;  ///< one past
  bool on_host = false;
  std::unique_ptr<kernels::Recording> recording;  ///< null until it is recorded
};

/// Must not move, because `on_host` points into it.
struct DeviceProgram {
  Program program;
  std::vector<BoundInstruction> bound;
  std::vector<EventPointer> reached;  ///< one per instruction; null if no other stream waits for it
  /// The same for waits of the host, by slot of the run.
  std::array<std::vector<EventPointer>, HostQueues::kSlots> completed;
  HostProgram on_host;
  /// The communicator whose collectives run on streams; null: there are none, or the host runs
  /// them.
  comm::Communicator* communicator = nullptr;
  /// How many collectives of that one are in the list up to each instruction.
  std::vector<std::int64_t> collective_number;
  std::vector<Stretch> stretches;  ///< cover the whole list
  std::int32_t inputs_end = 0;     ///< one past the last instruction that reads a staged input
  std::int64_t runs = 0;           ///< number of runs begun
  bool is_recorded = false;        ///< true: all ranks have recorded every stretch that can be
  bool stays_plain = false;        ///< true: it cannot be recorded on some rank
  bool has_marks = false;          ///< true: its recordings have marks

  /// Returns the event of instruction `i` in a run, on which the host waits.
  [[nodiscard]] const EventPointer& completed_event(RunNumber run, std::int32_t i) const {
    return completed[run % HostQueues::kSlots][static_cast<std::size_t>(i)];
  }
};

/// Throws InternalError as bind_instruction does, and if an instruction is predicated but its
/// operation does not support that. `device` outlives the result.
std::unique_ptr<DeviceProgram> make_device_program(Program program, const ExecutorParts& parts,
                                                   kernels::Device& device);

}  // namespace strata::runtime
