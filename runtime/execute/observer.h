// The interface of what follows execution: status page, trace, profiler, fault injection of tests.
#pragma once

#include "runtime/program/program.h"

namespace strata::runtime {

/// Called on the queue's thread around each instruction; calls for different queues are concurrent.
/// On a device they surround the enqueuing, often while the Program before runs, and are left out
/// if a recording is replayed (see `wants_marks`). An observer must not allocate in the steady
/// state, block or throw (except fault injection).
class Observer {
 public:
  virtual ~Observer() = default;
  /// Executor::start was called with `step`. Called on the thread that starts, before any queue
  /// takes up the Program.
  virtual void starting(const Program& program, std::int64_t step) {
    (void)program;
    (void)step;
  }
  /// The compute queue takes up a Program; `step` is what Executor::start was given. It is called
  /// once nothing waits for the run before: on a CPU on the queue's thread, on a device when the
  /// host hears that run's end, which may be after the enqueuing. Not called after an error.
  virtual void begin_program(const Program& program, std::int64_t step) {
    (void)program;
    (void)step;
  }
  virtual void begin(const Program& program, int instruction) = 0;
  virtual void end(const Program& program, int instruction) = 0;
  /// Between both, where a thread does the work: the predicate forbids it, and nothing is done.
  virtual void skipped(const Program& program, int instruction) {
    (void)program;
    (void)instruction;
  }

  /// The host itself has copied an instruction's operand between tiers, on a CPU that plays the
  /// device. Not called if the predicate forbade it, nor for disk transfers, which the disk counts.
  virtual void copied(const Program& program, int instruction) {
    (void)program;
    (void)instruction;
  }

  /// The CPU's compute queue stood still before an instruction for `ns`, until queue `on` had come
  /// far enough.
  virtual void waited(const Program& program, int instruction, Queue on, std::int64_t ns) {
    (void)program;
    (void)instruction;
    (void)on;
    (void)ns;
  }

  /// True: `seen_begin` and `seen_end` are to be called for replayed recordings of ranks that have
  /// peers, at the cost of marks in these. Asked once, when the executor is made.
  [[nodiscard]] virtual bool wants_marks() const { return false; }
  /// The device has begun a collective or the first instruction of a block, or has ended a
  /// collective. The host looks several times a millisecond while it waits, and may miss short
  /// ones. `collective` is the communicator's number of a collective. The last begin_program was of
  /// the same run.
  virtual void seen_begin(const Program& program, int instruction, std::int64_t collective) {
    (void)program;
    (void)instruction;
    (void)collective;
  }
  virtual void seen_end(const Program& program, int instruction) {
    (void)program;
    (void)instruction;
  }

  /// True: `executed` is to be called for each instruction of a device, at the cost of a
  /// measurement around each and without recordings. Asked once, when the executor is made.
  [[nodiscard]] virtual bool wants_device_times() const { return false; }
  /// The device's time for an instruction, by std::chrono::steady_clock; called after the run.
  /// Always called for transfers between memory and disk, at their end: they overlap in a queue.
  virtual void executed(const Program& program, int instruction, std::int64_t begin_ns,
                        std::int64_t end_ns) {
    (void)program;
    (void)instruction;
    (void)begin_ns;
    (void)end_ns;
  }
};

}  // namespace strata::runtime
