// Who is told what executes: status page, trace, profiler, fault injection of tests.
#pragma once

#include "runtime/program/program.h"

namespace strata::runtime {

/// Called on the queue's thread around each instruction; calls of different queues are concurrent.
/// On a device beside the host: around its enqueuing, and not at all where a recording is replayed.
/// Must not allocate in the steady state, block or throw (except fault injection).
class Observer {
 public:
  virtual ~Observer() = default;
  /// Executor::start was called, with `step`: before any queue takes up the Program, on the thread
  /// that calls it.
  virtual void starting(const Program& program, std::int64_t step) {
    (void)program;
    (void)step;
  }
  /// The compute queue takes up a Program; `step` is what Executor::start was given. A CPU calls it
  /// once the first instruction there need not wait for the run before, and not after an error.
  virtual void begin_program(const Program& program, std::int64_t step) {
    (void)program;
    (void)step;
  }
  virtual void begin(const Program& program, int instruction) = 0;
  virtual void end(const Program& program, int instruction) = 0;

  /// The host has copied an instruction's operand between tiers itself, on a CPU "device"; not
  /// where its predicate forbade that. What goes to and from the disk is counted there.
  virtual void copied(const Program& program, int instruction) {
    (void)program;
    (void)instruction;
  }

  /// The compute queue of a CPU stood still before an instruction until queue `on` had come far
  /// enough.
  virtual void waited(const Program& program, int instruction, Queue on, std::int64_t ns) {
    (void)program;
    (void)instruction;
    (void)on;
    (void)ns;
  }

  /// True: `executed` shall be called for each instruction of a device, at the cost of a
  /// measurement around each and of recordings. Asked once, when the executor is made.
  [[nodiscard]] virtual bool wants_device_times() const { return false; }
  /// When the device worked on it, by std::chrono::steady_clock; called after the run. Always
  /// called for transfers between memory and disk, at their end: they overlap within their queue.
  virtual void executed(const Program& program, int instruction, std::int64_t begin_ns,
                        std::int64_t end_ns) {
    (void)program;
    (void)instruction;
    (void)begin_ns;
    (void)end_ns;
  }
};

}  // namespace strata::runtime
