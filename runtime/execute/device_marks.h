// Shows which recorded instruction a device runs: recordings write it into pinned memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/device/device.h"
#include "runtime/execute/device_program.h"
#include "runtime/execute/device_runs.h"
#include "runtime/execute/observer.h"

namespace strata::runtime {

/// Marks collectives and the first instruction of each block. One thread records and looks. The
/// memory must outlive recordings that have marks.
class DeviceMarks {
 public:
  /// `device` and `observers` outlive this object.
  DeviceMarks(kernels::Device& device, const std::vector<Observer*>& observers);

  /// Enqueue what marks an instruction that is recorded, before and after it.
  void begin(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index);
  void end(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index);
  /// Enqueues that nothing is under way: the end of a recording.
  void clear(kernels::Stream& stream);

  /// Tells observers what the device has come to since the last look. `run` replays recordings.
  void look(const DeviceRun& run);

 private:
  /// What a word says of an instruction; words are 0 where nothing is under way.
  static constexpr std::uint32_t begun(std::int32_t index) {
    return 2 * static_cast<std::uint32_t>(index) + 1;
  }
  static constexpr std::uint32_t ended(std::int32_t index) { return begun(index) + 1; }

  [[nodiscard]] std::uint32_t* word(Queue queue) const;
  void look(const DeviceRun& run, Queue queue);
  void tell_begin(const DeviceRun& run, std::int32_t index);
  void tell_end(const DeviceRun& run, std::int32_t index);

  kernels::Device& device_;
  const std::vector<Observer*>& observers_;
  std::unique_ptr<kernels::Memory> words_;  ///< one for each queue
  std::array<std::uint32_t, kQueues> seen_{};
};

}  // namespace strata::runtime
