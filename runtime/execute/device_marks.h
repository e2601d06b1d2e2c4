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

/// Marks collectives and the first instruction of each block. A recording is replayed in many runs,
/// so what it writes is the same in all: which run it belongs to stands in a word of its own, which
/// is enqueued before the replay. One thread records and looks. The memory must outlive recordings
/// that have marks.
class DeviceMarks {
 public:
  /// `device` and `observers` outlive this object.
  DeviceMarks(kernels::Device& device, const std::vector<Observer*>& observers);

  /// Enqueue what marks an instruction that is recorded, before and after it.
  void begin(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index);
  void end(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index);
  /// Enqueues that nothing is under way: the end of a recording.
  void clear(kernels::Stream& stream);

  /// Enqueues that `run` replays from here on. All work of runs before it has ended by then.
  void begin_run(kernels::Stream& stream, RunNumber run);

  /// What the device has written: the words of the queues belong to the run that `run` names.
  struct Words {
    std::uint32_t run = 0;
    std::array<std::uint32_t, kQueues> queues{};
    [[nodiscard]] bool are_of(RunNumber number) const { return run == run_word(number); }
  };
  [[nodiscard]] Words read() const;
  /// Tells observers what the device has come to since the last call. `run` is the one that `words`
  /// belong to; null: that run is over, and with it all that was under way.
  void tell(const Words& words, const DeviceRun* run);

 private:
  /// What was last told of a queue; all zero where nothing was under way.
  struct Mark {
    const Program* program = nullptr;
    std::uint32_t run = 0;
    std::uint32_t value = 0;
    bool operator==(const Mark&) const = default;
    [[nodiscard]] std::int32_t index() const { return static_cast<std::int32_t>((value - 1) / 2); }
    [[nodiscard]] bool is_under_way() const { return value % 2 == 1; }
    [[nodiscard]] bool has_ended() const { return value != 0 && !is_under_way(); }
  };
  /// What a word says of an instruction; words are 0 where nothing is under way.
  static constexpr std::uint32_t begun(std::int32_t index) {
    return 2 * static_cast<std::uint32_t>(index) + 1;
  }
  static constexpr std::uint32_t ended(std::int32_t index) { return begun(index) + 1; }
  static constexpr std::uint32_t run_word(RunNumber run) { return static_cast<std::uint32_t>(run); }

  [[nodiscard]] std::uint32_t* word(int place) const;
  [[nodiscard]] std::uint32_t* word(Queue queue) const { return word(static_cast<int>(queue)); }
  static Mark mark_of(const Words& words, Queue queue, const DeviceRun* run);
  void tell(Queue queue, const Mark& now, const DeviceRun* run);
  void tell_begin(const DeviceRun& run, std::int32_t index);
  void tell_end(const Mark& mark);

  kernels::Device& device_;
  const std::vector<Observer*>& observers_;
  std::unique_ptr<kernels::Memory> words_;  ///< one for each queue, then that of the run
  std::array<Mark, kQueues> told_{};
};

}  // namespace strata::runtime
