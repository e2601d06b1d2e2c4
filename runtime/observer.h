// Who is told what executes: status page, trace, profiler, fault injection of tests.
#pragma once

#include "runtime/program.h"

namespace strata::runtime {

/// Called on the queue's thread around each instruction; calls of different queues are concurrent.
/// Must not allocate in the steady state, block or throw (except fault injection).
class Observer {
 public:
  virtual ~Observer() = default;
  /// The compute queue takes up a Program, before its first instruction there; `step` is what
  /// Executor::start was given.
  virtual void begin_program(const Program& program, std::int64_t step) {
    (void)program;
    (void)step;
  }
  virtual void begin(const Program& program, int instruction) = 0;
  virtual void end(const Program& program, int instruction) = 0;
};

}  // namespace strata::runtime
